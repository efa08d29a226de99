// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser controls a page in a headless Chromium, for tests of web pages.
//
//	page := browser.Open(t, url)
//	page.Fill("#name", "web")
//	page.Click("button")
//	page.Read("#answer", "2 clusters")
//	require.Empty(t, page.Complaints)
//
// The package implements the DevTools protocol itself, because the tests need only a dozen of its methods.
package browser

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

// A Tab is a page in a headless Chromium. Its methods find elements by CSS selectors, and end the test if they fail.
type Tab struct {
	*testing.T
	connection *websocket.Conn
	calls      int
	// Requests lists the methods and URLs of the page's requests. Complaints lists its console messages, uncaught exceptions and
	// violations of its content security policy.
	Requests, Complaints []string
}

// findChromium returns the path of Chromium. If Chromium is not installed, it skips the test, or fails it in CI.
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

// Open starts a browser for this test and opens a URL.
func Open(t *testing.T, url string) *Tab {
	t.Helper()
	chromium := findChromium(t)
	// t.TempDir is unsuitable, because it fails if the browser writes to its directory while the directory is removed.
	dir, err := os.MkdirTemp("", "celset-")
	require.NoError(t, err)
	// Chromium runs as root only without its sandbox. The certificates of servers in tests are self-signed.
	command := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--ignore-certificate-errors", "--remote-debugging-port=0", "--user-data-dir="+dir, "about:blank")
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Wait()
		_ = os.RemoveAll(dir)
	})
	b := &Tab{T: t}
	require.Eventually(t, func() bool { return b.connect(dir) }, time.Minute, 50*time.Millisecond, "%s does not start", chromium)
	t.Cleanup(func() { _ = b.connection.Close() })
	for _, domain := range []string{"Network", "Runtime", "Page", "Log"} {
		b.call(domain+".enable", nil)
	}
	b.Navigate(url)
	return b
}

// connect connects to the only page of the browser whose data are in dir. It reports whether the browser is ready.
func (b *Tab) connect(dir string) bool {
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
	b.connection, response, err = websocket.DefaultDialer.DialContext(b.Context(), pages[0].WebSocketDebuggerURL, nil)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil
}

// Navigate opens another URL in the same tab. If only the fragment differs, the page is loaded anew.
func (b *Tab) Navigate(url string) {
	b.Helper()
	b.call("Page.navigate", map[string]any{"url": "about:blank"})
	b.call("Page.navigate", map[string]any{"url": url})
	b.Wait(func() bool { return b.Evaluate(`location.href !== "about:blank" && document.readyState`) == "complete" }, url)
}

// call calls a method of the DevTools protocol. While it waits for the response, it records the events that the page sends.
func (b *Tab) call(method string, params any) json.RawMessage {
	b.Helper()
	b.calls++
	require.NoError(b, b.connection.SetReadDeadline(time.Now().Add(2*time.Minute)))
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
				Entry            struct{ Source, Level, Text, URL string }
				Args             json.RawMessage
			}
		}
		require.NoError(b, b.connection.ReadJSON(&message), method)
		switch event := message.Params; message.Method {
		case "Network.requestWillBeSent":
			if !strings.HasPrefix(event.Request.URL, "data:") {
				b.Requests = append(b.Requests, event.Request.Method+" "+event.Request.URL)
			}
		case "Runtime.exceptionThrown":
			b.Complaints = append(b.Complaints, string(event.ExceptionDetails))
		case "Runtime.consoleAPICalled":
			b.Complaints = append(b.Complaints, fmt.Sprintf("console.%s: %s", event.Type, event.Args))
		case "Log.entryAdded":
			// The page shows the errors of its server, so they are no complaints.
			if event.Entry.Source != "network" && (event.Entry.Level == "error" || event.Entry.Level == "warning") {
				b.Complaints = append(b.Complaints, fmt.Sprintf("%s: %s %s", event.Entry.Source, event.Entry.Text, event.Entry.URL))
			}
		}
		if message.ID == b.calls {
			require.Nil(b, message.Error, "%s %v", method, params)
			return message.Result
		}
	}
}

// Evaluate runs a script in the page and returns its result. If the result is a promise, Evaluate returns the promise's result. Each
// argument, as JSON, replaces a %s in the script. Without arguments, the script is not changed.
func (b *Tab) Evaluate(script string, args ...any) any {
	b.Helper()
	if len(args) > 0 {
		for i, arg := range args {
			encoded, err := json.Marshal(arg)
			require.NoError(b, err)
			args[i] = encoded
		}
		script = fmt.Sprintf(script, args...)
	}
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	result := b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true})
	require.NoError(b, json.Unmarshal(result, &answer))
	require.Nil(b, answer.ExceptionDetails, "%.500s", script)
	return answer.Result.Value
}

// Fill replaces the text of a field.
func (b *Tab) Fill(selector, text string) {
	b.Helper()
	b.find(selector)
	b.Evaluate(`(() => { const e = document.querySelector(%s); e.value = ""; e.focus() })()`, selector)
	b.Type(text)
}

// Type writes text into the element with the focus, instead of the selected text.
func (b *Tab) Type(text string) {
	b.Helper()
	b.call("Input.insertText", map[string]any{"text": text})
}

// Press presses a key, for example "ArrowDown", with modifiers: 1 for Alt, 2 for Ctrl, 8 for Shift. The code is the key's virtual key
// code, which Chromium needs for keys that it handles itself.
func (b *Tab) Press(key string, code, modifiers int) {
	b.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers})
	}
}

// find waits until the page has the element.
func (b *Tab) find(selector string) {
	b.Helper()
	b.Wait(func() bool { return b.Evaluate(`document.querySelector(%s) !== null`, selector) == true }, selector)
}

// Click clicks an element.
func (b *Tab) Click(selector string) {
	b.Helper()
	b.find(selector)
	b.Evaluate(`document.querySelector(%s).click()`, selector)
}

// Choose chooses the option of a select element by its text.
func (b *Tab) Choose(selector, text string) {
	b.Helper()
	b.find(selector)
	require.Equal(b, true, b.Evaluate(`(() => {
		const select = document.querySelector(%s), option = [...select.options].find((o) => o.text === %s);
		if (!option) return false;
		select.value = option.value;
		return select.dispatchEvent(new Event("change", {bubbles: true}));
	})()`, selector, text), "%s has no option %q", selector, text)
}

// Read waits until the element contains the text, and returns the whole text of the element.
func (b *Tab) Read(selector, text string) (said string) {
	b.Helper()
	b.Wait(func() bool {
		said, _ = b.Evaluate(`document.querySelector(%s)?.innerText`, selector).(string)
		return said != "" && strings.Contains(said, text)
	}, fmt.Sprintf("%s says %q", selector, text))
	return said
}

// Wait calls the function so until the function returns true. It calls the function in the goroutine of the test, because the
// function may end the test.
func (b *Tab) Wait(so func() bool, what string) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("not in time: %s; the page says:\n%s\n%s", what, b.Evaluate(`document.body.innerText`), strings.Join(b.Complaints, "\n"))
		}
	}
}

// View sets the size of the window in pixels, and the colour scheme: "light" or "dark".
func (b *Tab) View(width, height int, scheme string) {
	b.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}})
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

// Shoot saves a screenshot of the whole page in the directory $CELSET_PICTURES, if that is set.
func (b *Tab) Shoot(name string, width int, scheme string) {
	b.Helper()
	dir := os.Getenv("CELSET_PICTURES")
	if dir == "" {
		return
	}
	b.View(width, 800, scheme)
	height, _ := b.Evaluate(`document.documentElement.scrollHeight`).(float64)
	b.View(width, max(int(height), 800), scheme)
	var picture struct{ Data []byte }
	require.NoError(b, json.Unmarshal(b.call("Page.captureScreenshot", nil), &picture))
	require.NoError(b, os.WriteFile(filepath.Join(dir, name), picture.Data, 0o600))
	b.View(width, 800, scheme)
}
