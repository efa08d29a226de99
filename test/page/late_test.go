// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

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
}
