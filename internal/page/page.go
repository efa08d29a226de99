// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page has the web page about devices and Placements, and serves it. The page has no data of a cluster. Its script asks
// a back end for the data.
//
//	http.Handle("/page/", http.StripPrefix("/page", page.Handler(page.Configuration{Backend: page.HTTP})))
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

// The back ends that the script of the page can ask.
const (
	// HTTP answers questions of package answers over HTTP.
	HTTP = "http"
	// WebAssembly answers the same questions in the browser.
	WebAssembly = "wasm"
	// Placements is the API of package placement/debug.
	Placements = "placements"
)

// Configuration is the content of configuration.json, which the script of the page reads first.
type Configuration struct {
	// Backend is the name of the back end.
	Backend string `json:"backend"`
}

// Policy is the content security policy of the page. It allows only files and connections of the server of the page.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; " +
	"worker-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	indexName         = "index.html"
	configurationName = "configuration.json"
)

//go:embed all:assets
var embedded embed.FS

// Assets returns the files of the page, without configuration.json.
func Assets() fs.FS {
	assets, err := fs.Sub(embedded, "assets")
	if err != nil {
		panic(err) // impossible: the name is valid
	}
	return assets
}

// contentTypes maps the extension of a file to its content type. Package mime is not used, because its types depend on the
// machine.
var contentTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".gz":   "application/gzip",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
	".wasm": "application/wasm",
}

// file is a file of the page.
type file struct {
	content []byte
	kind    string
	// tag is the entity tag of the content.
	tag string
}

func newFile(name string, content []byte) file {
	sum := sha256.Sum256(content)
	kind := contentTypes[path.Ext(name)]
	if kind == "" {
		kind = "application/octet-stream"
	}
	return file{content, kind, `"` + hex.EncodeToString(sum[:16]) + `"`}
}

// files returns the embedded files by name.
var files = sync.OnceValue(func() map[string]file {
	all := map[string]file{}
	assets := Assets()
	err := fs.WalkDir(assets, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(assets, name)
		all[name] = newFile(name, content)
		return err
	})
	if err != nil {
		panic(err) // impossible: the files are part of the program
	}
	return all
})

// Has reports whether the page has a file. The path is relative to the path of the page, and "" is the page.
func Has(name string) bool {
	_, ok := files()[name]
	return ok || name == "" || name == configurationName
}

type handler struct {
	configuration file
}

// Handler returns a handler for the files of the page. The path of a request is relative to the path of the page, as
// [http.StripPrefix] leaves it. An empty path is redirected to a path with a slash, because the page refers to its files by
// relative URLs.
func Handler(configuration Configuration) http.Handler {
	content, err := json.Marshal(configuration)
	if err != nil {
		panic(err) // impossible: the type has only strings
	}
	return &handler{newFile(configurationName, content)}
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	SetHeader(w.Header())
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page allows only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	if request.URL.Path == "" {
		redirect(w, request)
		return
	}
	name := strings.TrimPrefix(request.URL.Path, "/")
	if name == "" {
		name = indexName
	}
	found, ok := files()[name]
	if name == configurationName {
		found, ok = h.configuration, true
	}
	if !ok {
		http.Error(w, "the page has no such file", http.StatusNotFound)
		return
	}
	header := w.Header()
	header.Set("Content-Type", found.kind)
	header.Set("ETag", found.tag)
	// A browser must ask again, because a new version of the program may have new files.
	header.Set("Cache-Control", "no-cache")
	http.ServeContent(w, request, name, time.Time{}, bytes.NewReader(found.content))
}

// redirect adds a slash to the path. The target is relative, so that it is right behind a proxy that adds another prefix.
func redirect(w http.ResponseWriter, request *http.Request) {
	target := "./"
	if original, err := url.ParseRequestURI(request.RequestURI); err == nil {
		target = "./" + url.PathEscape(path.Base(original.Path)) + "/"
	}
	w.Header().Set("Location", target)
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusPermanentRedirect)
}

// SetHeader sets the headers that restrict what a browser does with an answer.
func SetHeader(header http.Header) {
	header.Set("Content-Security-Policy", Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}
