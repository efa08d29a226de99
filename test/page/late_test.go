// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/page"
	"github.com/celset/celset/test/internal/browser"
)

// endless is a worker whose program never answers the question "try".
const endless = `postMessage({ready: true});
onmessage = ({data: {id, name}}) => {
  while (name === "try");
  postMessage({id, answer: '{"machines": [], "nodes": []}'});
};`

// TestEndlessAnswer checks that an answer that takes too long does not block later questions.
func TestEndlessAnswer(t *testing.T) {
	assets := page.Handler(page.Configuration{Backend: page.WebAssembly})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/src/worker.js" {
			assets.ServeHTTP(w, request)
			return
		}
		page.SetHeader(w.Header())
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, endless)
	}))
	t.Cleanup(server.Close)
	tab := browser.Open(t, server.URL)
	tab.Read("#answer", "Nothing to try yet")
	require.Equal(t, "The answer takes more than 0.5 seconds. Ask about fewer nodes or devices, or simplify the expression.", tab.Evaluate(`
		import(location.origin + "/src/backend-wasm.js").then(async ({create}) => {
			const {ask} = await create(() => {}, 500);
			const asked = ask("try", {}).catch((error) => error.message);
			const queued = await ask("overview", {}).catch((error) => error.message);
			// On a slow machine, this answer may take too long, too.
			while (!await ask("overview", {}).catch(() => null));
			return queued === await asked ? queued : "another error";
		})`))
	require.Contains(t, tab.Evaluate(`
		import(location.origin + "/src/backend-wasm.js").then(async ({create}) => {
			const {ask} = await create(() => {}, 3600 * 1000);
			const controller = new AbortController(), asked = ask("try", {}, controller.signal);
			await new Promise((resolve) => setTimeout(resolve)); // the program gets the question
			controller.abort();
			return asked.catch((error) => error.message);
		})`), "takes more than 5 seconds")
}

// TestNewerQuestion checks that a newer question ends the one before it.
func TestNewerQuestion(t *testing.T) {
	assets := page.Handler(page.Configuration{Backend: page.HTTP})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		question, _ := io.ReadAll(request.Body)
		switch {
		case request.URL.Path != "/answers/try":
			assets.ServeHTTP(w, request)
		case string(question) == `"first"`:
			<-request.Context().Done()
		default:
			_, _ = w.Write(question)
		}
	}))
	t.Cleanup(server.Close)
	tab := browser.Open(t, server.URL)
	require.Equal(t, "third", tab.Evaluate(`
		Promise.all(["dom", "backend-http"].map((name) => import(location.origin + "/src/" + name + ".js"))).then(async ([{latest}, {create}]) => {
			const {ask} = await create();
			return new Promise((resolve, reject) => {
				const next = latest((question, signal) => ask("try", question, signal), resolve, reject);
				["first", "second", "third"].forEach((question) => next(question));
			});
		})`))
}

// TestChangesDuringQuestion checks that changes of the objects don't abort a question that takes longer than the time between them.
func TestChangesDuringQuestion(t *testing.T) {
	assets := page.Handler(page.Configuration{Backend: page.HTTP})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/answers/overview":
			_, _ = fmt.Fprintf(w, `{"live": true, "revision": "%d", "nodes": [], "machines": []}`, time.Now().UnixNano())
		case "/answers/try":
			select {
			case <-time.After(3 * time.Second):
			case <-request.Context().Done():
			}
			_, _ = io.WriteString(w, `{"problems": [], "subjects": [{"subject": "claim default/a", "fits": true, "summary": "an answer"}]}`)
		case "/events":
			for i := 0; request.Context().Err() == nil; i++ {
				_, _ = fmt.Fprintf(w, "data: {\"revision\": \"%d\"}\n\n", i)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		default:
			assets.ServeHTTP(w, request)
		}
	}))
	t.Cleanup(server.Close)
	// The documents are "a".
	tab := browser.Open(t, server.URL+"/#view=try&documents=SwQA")
	tab.Read("#answer .verdict", "an answer")
}
