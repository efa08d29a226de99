// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/page"
)

// handlers maps the prefix of the page to a handler of the page below this prefix.
var handlers = map[string]http.Handler{
	"":                  page.Handler(page.Configuration{Backend: page.HTTP}),
	"/debug/placements": http.StripPrefix("/debug/placements", page.Handler(page.Configuration{Backend: page.HTTP})),
}

func do(handler http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// assets returns the contents of all files of the page.
func assets(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, fs.WalkDir(page.Assets(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(page.Assets(), name)
		all[name] = string(content)
		return err
	}))
	require.Contains(t, all, "index.html")
	return all
}

func requireHeader(t *testing.T, header http.Header) {
	t.Helper()
	require.Equal(t, page.Policy, header.Get("Content-Security-Policy"))
	require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
	require.Equal(t, "no-referrer", header.Get("Referrer-Policy"))
	require.Equal(t, "same-origin", header.Get("Cross-Origin-Opener-Policy"))
	require.Equal(t, "same-origin", header.Get("Cross-Origin-Resource-Policy"))
	require.Empty(t, header.Get("Access-Control-Allow-Origin"))
}

func TestFiles(t *testing.T) {
	contents := assets(t)
	contents[""] = contents["index.html"]
	contents["configuration.json"] = `{"backend":"http"}`
	kinds := map[string]string{"": "text/html; charset=utf-8", ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
		".js": "text/javascript; charset=utf-8", ".json": "application/json", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}
	for prefix, handler := range handlers {
		for name, content := range contents {
			require.True(t, page.Has(name))
			answer := do(handler, http.MethodGet, prefix+"/"+name)
			require.Equal(t, http.StatusOK, answer.Code, name)
			require.Equal(t, content, answer.Body.String(), name)
			require.NotEmpty(t, kinds[path.Ext(name)], "%s: add the content type", name)
			require.Equal(t, kinds[path.Ext(name)], answer.Header().Get("Content-Type"), name)
			require.Equal(t, "no-cache", answer.Header().Get("Cache-Control"))
			require.Empty(t, answer.Header().Get("Content-Encoding"))
			requireHeader(t, answer.Header())

			again := do(handler, http.MethodGet, prefix+"/"+name, "If-None-Match", answer.Header().Get("ETag"))
			require.Equal(t, http.StatusNotModified, again.Code, name)
			head := do(handler, http.MethodHead, prefix+"/"+name)
			require.Equal(t, http.StatusOK, head.Code)
			require.Empty(t, head.Body.String())
		}
	}
}

func TestOtherRequests(t *testing.T) {
	for prefix, handler := range handlers {
		for _, name := range []string{"other.js", "../page.go", "..%2fpage.go", "%2e%2e/page.go", "src", "src/", "index.html/", "/index.html", "index.html%00", "INDEX.HTML", "a/index.html"} {
			answer := do(handler, http.MethodGet, prefix+"/"+name)
			require.Equal(t, http.StatusNotFound, answer.Code, name)
			requireHeader(t, answer.Header())
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch, "TRACE", "OTHER"} {
			answer := do(handler, method, prefix+"/")
			require.Equal(t, http.StatusMethodNotAllowed, answer.Code, method)
			require.Equal(t, "GET, HEAD", answer.Header().Get("Allow"))
			requireHeader(t, answer.Header())
		}
	}
	for target, location := range map[string]string{"/debug/placements": "./placements/", "/debug/placements?now=x": "./placements/"} {
		answer := do(handlers["/debug/placements"], http.MethodGet, target)
		require.Equal(t, http.StatusPermanentRedirect, answer.Code)
		require.Equal(t, location, answer.Header().Get("Location"))
		requireHeader(t, answer.Header())
	}
}

// TestPolicy checks that the policy allows nothing inline and nothing from other servers.
func TestPolicy(t *testing.T) {
	require.NotContains(t, page.Policy, "unsafe-inline")
	require.NotContains(t, page.Policy, "'unsafe-eval'")
	require.NotContains(t, page.Policy, "*")
	require.NotContains(t, page.Policy, "//")
	for _, directive := range []string{"default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
		require.Contains(t, page.Policy, directive)
	}
}

var (
	references = regexp.MustCompile(`(?i)<(?:script|link|img|iframe|source|object|embed)\b[^>]*?\b(?:src|href|data)\s*=\s*["']?([^"'\s>]+)`)
	scripts    = regexp.MustCompile(`(?is)<script\b[^>]*>(.*?)</script>`)
	inline     = regexp.MustCompile(`(?i)<style\b|<[a-z][^>]*\s(?:on[a-z]+|style)\s*=|javascript:`)
	imports    = regexp.MustCompile(`(?m)^\s*import\s*(?:[^'";]*?\bfrom\s*)?["']([^"']+)["']|^\s*export\s[^'";=]*?\bfrom\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)|new (?:URL|Worker)\(\s*["']([^"']+)["']\s*,\s*import\.meta\.url`)
)

// TestReferencesExist checks that the files that the page and its scripts load are files of the page.
func TestReferencesExist(t *testing.T) {
	all := assets(t)
	exists := func(from, reference string) {
		t.Helper()
		if strings.HasPrefix(reference, "data:") {
			return
		}
		require.NotContains(t, reference, ":", "%s loads %s", from, reference)
		require.False(t, strings.HasPrefix(reference, "/"), "%s loads %s, which is not relative", from, reference)
		name := path.Join(path.Dir(from), reference)
		// The playground adds these files.
		if name != "celset.wasm.gz" && name != "wasm_exec.js" && name != "examples.json" && name != "configuration.json" {
			require.Contains(t, all, name, "%s loads %s", from, reference)
		}
	}
	for name, content := range all {
		switch {
		case strings.HasSuffix(name, ".html"):
			for _, match := range references.FindAllStringSubmatch(content, -1) {
				exists(name, match[1])
			}
		case strings.HasSuffix(name, ".js"):
			for _, match := range imports.FindAllStringSubmatch(content, -1) {
				exists(name, strings.Join(match[1:], ""))
			}
		}
	}
}

// TestNothingIsInline checks that the policy of the page blocks no part of the page.
func TestNothingIsInline(t *testing.T) {
	for name, content := range assets(t) {
		switch {
		case strings.HasSuffix(name, ".html"):
			for _, match := range scripts.FindAllStringSubmatch(content, -1) {
				require.Empty(t, strings.TrimSpace(match[1]), "%s has an inline script", name)
			}
			require.Empty(t, inline.FindAllString(content, -1), name)
		case strings.HasPrefix(name, "src/") && strings.HasSuffix(name, ".js"):
			require.Empty(t, regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|document\.cookie|setAttribute\(\s*["'](?:style|on[a-z]+)["']`).FindAllString(content, -1),
				"%s: names and messages must never become a part of the structure of the page", name)
		}
	}
}
