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
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/browser"
)

// TestNewerQuestion checks that a newer question ends the one before it.
func TestNewerQuestion(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium")
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
		Promise.all(["dom", "backend-http"].map((name) => import(location.origin + "/src/" + name + ".js"))).then(async ([{newest}, {create}]) => {
			const {ask} = await create();
			return new Promise((resolve, reject) => {
				const next = newest((signal, question) => ask("try", question, signal), resolve, reject);
				["first", "second", "third"].forEach((question) => next(question));
			});
		})`))
}

// TestChangesDuringQuestion checks that changes of the objects don't abort a question that takes longer than the time between them.
func TestChangesDuringQuestion(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium")
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
			_, _ = io.WriteString(w, `{"problems": [], "subjects": [{"subject": "claim default/a", "fits": true, "verdict": "Fits", "summary": "an answer"}]}`)
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
