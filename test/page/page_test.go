// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/test/internal/browser"
)

// markup is a name that would run a script if the page treated the name as HTML.
const markup = `<img src=x onerror=alert(1)>`

// Virtual key codes, and a modifier.
const (
	keyTab    = 9
	keyEnter  = 13
	keyEscape = 27
	keyA      = 65
	ctrl      = 2
)

// serve runs "kubectl celset serve" until ctx or the test ends, and returns the URL that the command prints.
func serve(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	reader, writer := io.Pipe()
	var ended sync.WaitGroup
	ended.Go(func() {
		code := cli.Run(ctx, append([]string{"serve"}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: os.Stderr})
		_ = writer.CloseWithError(fmt.Errorf("exit code %d", code))
	})
	t.Cleanup(func() {
		cancel()
		_ = reader.Close()
		ended.Wait()
	})
	lines := bufio.NewReader(reader)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if at := strings.Index(line, "http://"); at >= 0 {
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			return strings.TrimSpace(line[at:])
		}
	}
}

// requireSilent checks that the page has sent requests to its own origin only, and that the browser has reported no error and no
// violation of the content security policy.
func requireSilent(t *testing.T, page *browser.Tab, address string) {
	t.Helper()
	page.Evaluate(`0`) // It receives the events up to now.
	require.Empty(t, page.Complaints)
	origin, err := url.Parse(address)
	require.NoError(t, err)
	for _, request := range page.Requests {
		_, target, _ := strings.Cut(request, " ")
		require.True(t, target == "about:blank" || strings.HasPrefix(target, "http://"+origin.Host+"/"), "a request to another origin: %s", request)
	}
}

// write replaces the text of the editor, and waits for the answer.
func write(page *browser.Tab, text string) {
	begin(page, text)
	settled(page)
}

// begin replaces the text of the editor, and asks for the answer.
func begin(page *browser.Tab, text string) {
	page.Evaluate(`document.querySelector("#editor").shadowRoot.querySelector(".cm-content").focus()`)
	page.Press("a", keyA, ctrl)
	page.Type(text)
	page.Press("Enter", keyEnter, ctrl)
}

// settled waits for the answer to the last question.
func settled(page *browser.Tab) {
	page.Wait(func() bool {
		return page.Evaluate(`document.querySelector("#answer").hasAttribute("aria-busy")`) == false
	}, "the answer")
}

// written returns the text of the editor, as far as the editor shows it.
func written(page *browser.Tab) string {
	text, _ := page.Evaluate(`document.querySelector("#editor")?.shadowRoot.querySelector(".cm-content").innerText`).(string)
	return text
}
