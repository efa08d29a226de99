// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command playground builds the static site of the playground: the page about devices, with celset as a WebAssembly program.
//
//	go run -C test ./playground -out ../dist/playground
//	go run -C test ./playground -out ../dist/playground -serve 127.0.0.1:8081
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", "..", "Root of the repository.")
	out := flag.String("out", filepath.Join("..", "dist", "playground"), "Directory of the site. It is replaced.")
	serve := flag.String("serve", "", "Address to serve the site on, for example 127.0.0.1:8081.")
	flag.Parse()
	if err := run(context.Background(), *root, *out, *serve); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, out, serve string) error {
	if err := site(ctx, root, out); err != nil {
		return err
	}
	if serve == "" {
		return nil
	}
	fmt.Printf("the playground is at http://%s/\n", serve)
	server := &http.Server{Addr: serve, Handler: http.FileServer(http.Dir(out)), ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// site writes the files of the site. The same sources give the same bytes.
func site(ctx context.Context, root, out string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.CopyFS(out, os.DirFS(filepath.Join(root, "internal", "page", "assets"))); err != nil {
		return err
	}
	examples, err := examplesOf(ctx, root)
	if err != nil {
		return err
	}
	for name, content := range map[string]any{"configuration.json": map[string]string{"backend": "wasm"}, "examples.json": examples} {
		raw, err := json.MarshalIndent(content, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name), raw, 0o644); err != nil { //nolint:gosec // a site is public
			return err
		}
	}
	goroot, err := output(ctx, root, nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	support, err := os.ReadFile(filepath.Join(goroot, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "wasm_exec.js"), support, 0o644); err != nil { //nolint:gosec // a site is public
		return err
	}
	program, err := compile(ctx, root)
	if err != nil {
		return err
	}
	packed, err := pack(program)
	if err != nil {
		return err
	}
	fmt.Printf("celset.wasm has %d bytes, and %d compressed; %d examples\n", len(program), len(packed), len(examples))
	return os.WriteFile(filepath.Join(out, "celset.wasm.gz"), packed, 0o644) //nolint:gosec // a site is public
}

// compile returns the WebAssembly program.
func compile(ctx context.Context, root string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "playground")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "celset.wasm")
	_, err = output(ctx, root, []string{"GOOS=js", "GOARCH=wasm"}, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd/celset-playground")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// output runs a command in a directory, and returns its output.
func output(ctx context.Context, dir string, environment []string, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), environment...)
	raw, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s: %w: %s", command, err, failed.Stderr)
	}
	return strings.TrimSpace(string(raw)), err
}

// pack compresses a file. The result has neither a name nor a time.
func pack(content []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
