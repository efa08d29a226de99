// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"
	"sync"
)

//go:embed page/page.html
var pageHTML string

//go:embed page/page.css
var pageStyle string

//go:embed page/page.js
var pageScript string

// page is the web page. It is the same for all users and has no data of the hub, so it needs no authentication. Its script
// requests data with the user's token.
type page struct {
	content []byte
	// policy is the content security policy. It allows only the page's own script and connections to this server.
	policy string
}

var thePage = sync.OnceValue(func() page {
	var content bytes.Buffer
	err := template.Must(template.New("page").Parse(pageHTML)).Execute(&content, struct {
		Style  template.CSS
		Script template.JS
	}{template.CSS(pageStyle), template.JS(pageScript)})
	if err != nil {
		panic(err) // impossible: the template is part of the program
	}
	return page{content.Bytes(), strings.Join([]string{
		"default-src 'none'", "script-src " + digest(pageScript), "style-src " + digest(pageStyle),
		"connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; ")}
})

// digest returns the hash of inline content, in the form that a content security policy needs.
func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// isForPeople reports whether a request asks for the web page.
func isForPeople(request *http.Request) bool {
	path := strings.TrimSuffix(request.URL.Path, "/")
	return path == Path && (request.Method == http.MethodGet || request.Method == http.MethodHead)
}

// ServeHTTP sends the web page.
func (p page) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", p.policy)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	if request.Method != http.MethodHead {
		_, _ = w.Write(p.content) // An error means that the client is gone.
	}
}
