// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// tab is a page of a headless Chromium, by its DevTools protocol. Elements are named by CSS selectors.
type tab struct {
	*testing.T
	connection *websocket.Conn
	calls      int
	// requests are those of the page, complaints what it wrote to the console and threw.
	requests, complaints []string
}

// findChromium skips the test where there is none, which CI must have.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "" {
		t.Skip("needs Chromium")
	}
	t.Fatal("needs Chromium: apt-get install chromium")
	return ""
}

// browse opens a URL in a browser of its own.
func browse(t *testing.T, chromium, url string) *tab {
	t.Helper()
	// The browser may write to its folder while it ends.
	dir, err := os.MkdirTemp("", "celset-")
	require.NoError(t, err)
	// Without a sandbox of its own it runs as root, too. Certificates of tests are signed by nobody.
	command := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--ignore-certificate-errors", "--remote-debugging-port=0", "--user-data-dir="+dir, "about:blank")
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Wait()
		_ = os.RemoveAll(dir)
	})
	b := &tab{T: t}
	require.Eventually(t, func() bool {
		content, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		port, _, found := strings.Cut(string(content), "\n")
		if err != nil || !found {
			return false
		}
		response, err := http.Get("http://127.0.0.1:" + port + "/json/list") //nolint:noctx // it is on this machine
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var pages []struct {
			Type, WebSocketDebuggerURL string
		}
		if json.NewDecoder(response.Body).Decode(&pages) != nil || len(pages) != 1 || pages[0].Type != "page" {
			return false
		}
		b.connection, response, err = websocket.DefaultDialer.DialContext(t.Context(), pages[0].WebSocketDebuggerURL, nil)
		if err != nil {
			return false
		}
		return response.Body.Close() == nil
	}, time.Minute, 50*time.Millisecond, "%s does not start", chromium)
	t.Cleanup(func() { _ = b.connection.Close() })
	for _, domain := range []string{"Network", "Runtime", "Page"} {
		b.call(domain+".enable", nil)
	}
	b.call("Page.navigate", map[string]any{"url": url})
	b.wait(func() bool { return b.evaluate(`location.href !== "about:blank" && document.readyState`) == "complete" }, url)
	return b
}

// call calls a method of the protocol, and keeps what the page does meanwhile.
func (b *tab) call(method string, params any) json.RawMessage {
	b.Helper()
	b.calls++
	require.NoError(b, b.connection.SetReadDeadline(time.Now().Add(time.Minute)))
	require.NoError(b, b.connection.WriteJSON(map[string]any{"id": b.calls, "method": method, "params": params}))
	for {
		var message struct {
			ID     int
			Method string
			Error  any
			Result json.RawMessage
			Params struct {
				Type             string
				Request          struct{ Method, URL string }
				ExceptionDetails json.RawMessage
			}
		}
		require.NoError(b, b.connection.ReadJSON(&message), method)
		switch event := message.Params; message.Method {
		case "Network.requestWillBeSent":
			b.requests = append(b.requests, event.Request.Method+" "+event.Request.URL)
		case "Runtime.exceptionThrown":
			b.complaints = append(b.complaints, string(event.ExceptionDetails))
		case "Runtime.consoleAPICalled":
			b.complaints = append(b.complaints, "console."+event.Type)
		}
		if message.ID == b.calls {
			require.Nil(b, message.Error, "%s %v", method, params)
			return message.Result
		}
	}
}

// evaluate returns what a script says. Its arguments are encoded for it.
func (b *tab) evaluate(script string, args ...any) any {
	b.Helper()
	for i, arg := range args {
		encoded, err := json.Marshal(arg)
		require.NoError(b, err)
		args[i] = encoded
	}
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	result := b.call("Runtime.evaluate", map[string]any{"expression": fmt.Sprintf(script, args...), "returnByValue": true})
	require.NoError(b, json.Unmarshal(result, &answer))
	require.Nil(b, answer.ExceptionDetails, script)
	return answer.Result.Value
}

// fill writes a text into a field, in place of what is there.
func (b *tab) fill(selector, text string) {
	b.Helper()
	b.evaluate(`(() => { const e = document.querySelector(%s); e.value = ""; e.focus() })()`, selector)
	b.call("Input.insertText", map[string]any{"text": text})
}

func (b *tab) click(selector string) {
	b.Helper()
	b.evaluate(`document.querySelector(%s).click()`, selector)
}

// read waits until an element is there and has a text in it, and returns all of its text.
func (b *tab) read(selector, text string) (said string) {
	b.Helper()
	b.wait(func() bool {
		said, _ = b.evaluate(`document.querySelector(%s)?.innerText`, selector).(string)
		return said != "" && strings.Contains(said, text)
	}, fmt.Sprintf("%s says %q", selector, text))
	return said
}

// wait waits until something is so. It asks the page in this goroutine, which can end the test.
func (b *tab) wait(so func() bool, what string) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("not in time: %s; the page says:\n%s", what, b.evaluate(`document.body.innerText`))
		}
	}
}

// shoot writes a picture of the whole page into the folder that CELSET_PICTURES names.
func (b *tab) shoot(name string, width int, scheme string) {
	b.Helper()
	dir := os.Getenv("CELSET_PICTURES")
	if dir == "" {
		return
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}})
	size := map[string]any{"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": false}
	b.call("Emulation.setDeviceMetricsOverride", size)
	size["height"] = b.evaluate(`document.documentElement.scrollHeight`)
	b.call("Emulation.setDeviceMetricsOverride", size)
	var picture struct{ Data []byte }
	require.NoError(b, json.Unmarshal(b.call("Page.captureScreenshot", nil), &picture))
	require.NoError(b, os.WriteFile(filepath.Join(dir, name), picture.Data, 0o600))
}
