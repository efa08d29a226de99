// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/internal/page"
)

// backend is a back end whose answers are its questions.
type backend struct {
	mutex    sync.Mutex
	asked    int
	revision int
	changed  chan struct{}
	// before is called before each answer.
	before func(ctx context.Context, name string) error
}

func (b *backend) Answer(ctx context.Context, name string, question []byte) (any, error) {
	b.mutex.Lock()
	b.asked++
	before := b.before
	b.mutex.Unlock()
	if before != nil {
		if err := before(ctx, name); err != nil {
			return nil, err
		}
	}
	return map[string]any{"name": name, "question": json.RawMessage(question)}, nil
}

func (b *backend) Revision() (string, <-chan struct{}) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return fmt.Sprint(b.revision), b.changed
}

// change changes the objects.
func (b *backend) change() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.revision++
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *backend) questions() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.asked
}

// bench is a running server.
type bench struct {
	*Server
	*backend
	client *http.Client
	log    *bytes.Buffer
	// stop ends the server and returns the error of Run.
	stop func() error
}

func start(t *testing.T, adapt ...func(*Server)) *bench {
	t.Helper()
	listener, err := Listen(t.Context(), "127.0.0.1", 0)
	require.NoError(t, err)
	b := &bench{backend: &backend{changed: make(chan struct{})}, log: &bytes.Buffer{}}
	b.Server, err = New(listener, Options{Answers: b.backend, Changes: b.backend, Names: []string{answers.Overview, answers.Try}, Log: b.log})
	require.NoError(t, err)
	for _, change := range adapt {
		change(b.Server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	b.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	transport := &http.Transport{}
	b.client = &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, b.stop())
	})
	return b
}

func (b *bench) base() string { return "http://" + b.listener.Addr().String() }

// request returns a valid question with some changes.
func (b *bench) request(t *testing.T, method, path string, body io.Reader, adapt ...func(*http.Request)) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.base()+path, body)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+b.token)
	request.Header.Set("Content-Type", "application/json")
	for _, change := range adapt {
		change(request)
	}
	return request
}

func (b *bench) do(t *testing.T, request *http.Request) (status int, body string, header http.Header) {
	t.Helper()
	response, err := b.client.Do(request)
	require.NoError(t, err)
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(content), response.Header
}

func set(name, value string) func(*http.Request) {
	return func(request *http.Request) { request.Header.Set(name, value) }
}

func unset(name string) func(*http.Request) {
	return func(request *http.Request) { request.Header.Del(name) }
}

func host(name string) func(*http.Request) {
	return func(request *http.Request) { request.Host = name }
}

func TestQuestions(t *testing.T) {
	b := start(t)
	port := b.listener.Addr().(*net.TCPAddr).Port
	for _, adapt := range [][]func(*http.Request){
		{},
		{set("Origin", b.base()), set("Sec-Fetch-Site", "same-origin")},
		{host(fmt.Sprintf("localhost:%d", port)), set("Origin", fmt.Sprintf("http://localhost:%d", port))},
		{host(fmt.Sprintf("[::1]:%d", port)), set("Sec-Fetch-Site", "none")},
		{set("Content-Type", "application/json; charset=utf-8")},
	} {
		status, body, header := b.do(t, b.request(t, http.MethodPost, "/answers/overview", strings.NewReader(`{"a": 1}`), adapt...))
		require.Equal(t, http.StatusOK, status, body)
		require.JSONEq(t, `{"name": "overview", "question": {"a": 1}}`, body)
		require.Equal(t, "application/json", header.Get("Content-Type"))
		require.Equal(t, "no-store", header.Get("Cache-Control"))
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
		require.Equal(t, page.Policy, header.Get("Content-Security-Policy"))
		for name := range header {
			require.NotContains(t, name, "Access-Control", "no other page may read the answer")
		}
	}
	documents, err := json.Marshal(strings.Repeat("\"\n", answers.MaxDocuments/2))
	require.NoError(t, err)
	status, _, _ := b.do(t, b.request(t, http.MethodPost, "/answers/try", bytes.NewReader(documents)))
	require.Equal(t, http.StatusOK, status, "the longest documents fit")
}

func TestPageNeedsNoToken(t *testing.T) {
	b := start(t)
	for path, want := range map[string]string{"/": "<!doctype html>", "/index.html": "<!doctype html>", "/configuration.json": `{"backend":"http"}`} {
		status, body, header := b.do(t, b.request(t, http.MethodGet, path, nil, unset("Authorization")))
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, want)
		require.NotContains(t, body, b.token)
		require.Equal(t, page.Policy, header.Get("Content-Security-Policy"))
	}
	require.True(t, strings.HasPrefix(b.URL(), b.base()+"/#token="))
	require.Len(t, strings.TrimPrefix(b.URL(), b.base()+"/#token="), 43)
}

// TestAttacks checks that requests of other users and other pages are refused, with the token and without it.
func TestAttacks(t *testing.T) {
	b := start(t)
	other := newToken()
	const question = `{}`
	for name, attack := range map[string]struct {
		method, path, body string
		adapt              []func(*http.Request)
		want               int
	}{
		"no token":                    {"POST", "/answers/overview", question, []func(*http.Request){unset("Authorization")}, 401},
		"wrong token":                 {"POST", "/answers/overview", question, []func(*http.Request){set("Authorization", "Bearer "+other)}, 401},
		"beginning of the token":      {"POST", "/answers/overview", question, []func(*http.Request){set("Authorization", "Bearer "+b.token[:42])}, 401},
		"longer token":                {"POST", "/answers/overview", question, []func(*http.Request){set("Authorization", "Bearer "+b.token+"A")}, 401},
		"empty token":                 {"POST", "/answers/overview", question, []func(*http.Request){set("Authorization", "Bearer ")}, 401},
		"token as a password":         {"POST", "/answers/overview", question, []func(*http.Request){func(r *http.Request) { r.SetBasicAuth("token", b.token) }}, 401},
		"two tokens":                  {"POST", "/answers/overview", question, []func(*http.Request){func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+other) }}, 401},
		"token in the query":          {"POST", "/answers/overview?token=" + b.token, question, []func(*http.Request){unset("Authorization")}, 401},
		"token in a cookie":           {"POST", "/answers/overview", question, []func(*http.Request){unset("Authorization"), set("Cookie", "token="+b.token)}, 401},
		"events without a token":      {"GET", "/events", "", []func(*http.Request){unset("Authorization")}, 401},
		"events, token in the query":  {"GET", "/events?token=" + b.token, "", []func(*http.Request){unset("Authorization")}, 401},
		"rebound name":                {"POST", "/answers/overview", question, []func(*http.Request){host("attacker.example:" + b.port())}, 403},
		"rebound name of the page":    {"GET", "/", "", []func(*http.Request){host("attacker.example:" + b.port())}, 403},
		"name that ends like ours":    {"POST", "/answers/overview", question, []func(*http.Request){host("localhost:" + b.port() + ".attacker.example")}, 403},
		"name without the port":       {"POST", "/answers/overview", question, []func(*http.Request){host("localhost")}, 403},
		"another port":                {"POST", "/answers/overview", question, []func(*http.Request){host("localhost:1")}, 403},
		"another loopback address":    {"POST", "/answers/overview", question, []func(*http.Request){host("127.0.0.2:" + b.port())}, 403},
		"another spelling":            {"POST", "/answers/overview", question, []func(*http.Request){host("LOCALHOST.:" + b.port())}, 403},
		"another origin":              {"POST", "/answers/overview", question, []func(*http.Request){set("Origin", "https://attacker.example")}, 403},
		"origin of another port":      {"POST", "/answers/overview", question, []func(*http.Request){set("Origin", "http://127.0.0.1:1")}, 403},
		"origin with https":           {"POST", "/answers/overview", question, []func(*http.Request){set("Origin", "https://127.0.0.1:"+b.port())}, 403},
		"origin of another name":      {"POST", "/answers/overview", question, []func(*http.Request){set("Origin", "http://localhost:"+b.port())}, 403},
		"opaque origin":               {"POST", "/answers/overview", question, []func(*http.Request){set("Origin", "null")}, 403},
		"empty origin":                {"POST", "/answers/overview", question, []func(*http.Request){set("Origin", "")}, 403},
		"two origins":                 {"POST", "/answers/overview", question, []func(*http.Request){func(r *http.Request) { r.Header["Origin"] = []string{b.base(), "null"} }}, 403},
		"another site":                {"POST", "/answers/overview", question, []func(*http.Request){set("Sec-Fetch-Site", "cross-site")}, 403},
		"another port of this site":   {"POST", "/answers/overview", question, []func(*http.Request){set("Sec-Fetch-Site", "same-site")}, 403},
		"page in a frame":             {"GET", "/", "", []func(*http.Request){set("Sec-Fetch-Site", "cross-site"), set("Sec-Fetch-Dest", "iframe")}, 403},
		"script of another site":      {"GET", "/configuration.json", "", []func(*http.Request){set("Sec-Fetch-Site", "cross-site")}, 403},
		"form":                        {"POST", "/answers/overview", question, []func(*http.Request){set("Content-Type", "text/plain")}, 415},
		"multipart form":              {"POST", "/answers/overview", question, []func(*http.Request){set("Content-Type", "multipart/form-data; boundary=x")}, 415},
		"no type":                     {"POST", "/answers/overview", question, []func(*http.Request){unset("Content-Type")}, 415},
		"wrong type":                  {"POST", "/answers/overview", question, []func(*http.Request){set("Content-Type", "application/json, text/plain")}, 415},
		"compressed":                  {"POST", "/answers/overview", question, []func(*http.Request){set("Content-Encoding", "gzip")}, 415},
		"preflight":                   {"OPTIONS", "/answers/overview", "", []func(*http.Request){set("Origin", b.base()), set("Access-Control-Request-Method", "POST")}, 405},
		"put":                         {"PUT", "/answers/overview", question, nil, 405},
		"delete":                      {"DELETE", "/answers/overview", question, nil, 405},
		"get":                         {"GET", "/answers/overview", "", nil, 405},
		"post of events":              {"POST", "/events", question, nil, 405},
		"put of the page":             {"PUT", "/index.html", question, nil, 405},
		"options of the page":         {"OPTIONS", "/", "", nil, 405},
		"path traversal":              {"GET", "/../../etc/passwd", "", nil, 404},
		"path traversal with escapes": {"GET", "/%2e%2e/%2e%2e/page.go", "", nil, 404},
		"path traversal in questions": {"POST", "/answers/../overview", question, nil, 404},
		"name with a slash":           {"POST", "/answers/overview/", question, nil, 404},
		"unknown question":            {"POST", "/answers/delete", question, nil, 404},
		"known question not offered":  {"POST", "/answers/placement", question, nil, 404},
		"question without a name":     {"POST", "/answers/", question, nil, 404},
		"no JSON":                     {"POST", "/answers/overview", "overview", nil, 400},
		"cut JSON":                    {"POST", "/answers/overview", `{"name": "`, nil, 400},
		"two values":                  {"POST", "/answers/overview", `{} {}`, nil, 400},
		"deep JSON":                   {"POST", "/answers/overview", strings.Repeat("[", 1_000_000), nil, 400},
		"empty":                       {"POST", "/answers/overview", "", nil, 400},
		"huge":                        {"POST", "/answers/try", `"` + strings.Repeat("x", maxQuestion) + `"`, nil, 413},
		"huge without a length":       {"POST", "/answers/try", `"` + strings.Repeat("x", maxQuestion) + `"`, []func(*http.Request){func(r *http.Request) { r.ContentLength = -1 }}, 413},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, header := b.do(t, b.request(t, attack.method, attack.path, strings.NewReader(attack.body), attack.adapt...))
			require.Equal(t, attack.want, status, body)
			require.NotContains(t, body, b.token)
			for name := range header {
				require.NotContains(t, name, "Access-Control")
			}
			if strings.HasPrefix(attack.path, "/answers/") || strings.HasPrefix(attack.path, "/events") {
				var refusal struct{ Error string }
				require.NoError(t, json.Unmarshal([]byte(body), &refusal), body)
				require.NotEmpty(t, refusal.Error)
			}
		})
	}
	require.Zero(t, b.questions(), "no refused question is answered")
}

func (b *bench) port() string {
	_, port, _ := net.SplitHostPort(b.listener.Addr().String())
	return port
}

// TestRawRequests sends requests that net/http does not send.
func TestRawRequests(t *testing.T) {
	b := start(t)
	for _, raw := range []string{
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: attacker.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:" + b.port() + "\r\nHost: attacker.example\r\n\r\n",
		"GET http://attacker.example/ HTTP/1.1\r\nHost: 127.0.0.1:" + b.port() + "\r\n\r\n",
		"CONNECT attacker.example:443 HTTP/1.1\r\nHost: attacker.example:443\r\n\r\n",
		"POST /answers/overview HTTP/1.1\r\nHost: 127.0.0.1:" + b.port() + "\r\nAuthorization: Bearer " + b.token + "\r\nContent-Length: 2\r\nTransfer-Encoding: chunked, identity\r\n\r\n{}",
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:" + b.port() + "\r\nX: " + strings.Repeat("x", 32<<10) + "\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.listener.Addr().String())
		require.NoError(t, err)
		require.NoError(t, connection.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(connection, raw)
		require.NoError(t, err)
		line, err := bufio.NewReader(connection).ReadString('\n')
		require.NoError(t, err, raw)
		require.Regexp(t, `^HTTP/1\.[01] (4\d\d|50[15]) `, line, raw)
		require.NoError(t, connection.Close())
	}
	require.Zero(t, b.questions())
}

// TestSlowBody checks that a question that does not arrive ends, and that the time limit of the request does not end a long
// answer.
func TestSlowBody(t *testing.T) {
	b := start(t, func(s *Server) {
		require.NotZero(t, s.http.ReadTimeout)
		s.http.ReadTimeout = 100 * time.Millisecond
	})
	b.before = func(ctx context.Context, _ string) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
			return nil
		}
	}
	read, write := io.Pipe()
	go func() { _, _ = write.Write([]byte("{")) }()
	status, body, _ := b.do(t, b.request(t, http.MethodPost, "/answers/overview", read))
	require.NoError(t, read.Close())
	require.Equal(t, http.StatusRequestTimeout, status)
	require.Contains(t, body, "did not arrive")
	require.Zero(t, b.questions())

	// On a slow machine, this question may arrive too late, too.
	require.Eventually(t, func() bool {
		status, _, _ := b.do(t, b.request(t, http.MethodPost, "/answers/overview", strings.NewReader(`{}`)))
		return status == http.StatusOK
	}, time.Minute, time.Millisecond)
}

func TestErrorsOfAnswers(t *testing.T) {
	b := start(t)
	b.before = func(_ context.Context, name string) error {
		if name == answers.Try {
			panic("attack")
		}
		return errors.New(`there is no node "x"`)
	}
	status, body, _ := b.do(t, b.request(t, http.MethodPost, "/answers/overview", strings.NewReader(`{}`)))
	require.Equal(t, http.StatusBadRequest, status)
	require.JSONEq(t, `{"error": "there is no node \"x\""}`, body)
	for range 3 {
		status, body, _ = b.do(t, b.request(t, http.MethodPost, "/answers/try", strings.NewReader(`{}`)))
		require.Equal(t, http.StatusInternalServerError, status)
		require.NotContains(t, body, "attack")
	}
	require.NoError(t, b.stop())
	require.Contains(t, b.log.String(), "panic: attack")
}

// TestManyQuestions checks that two questions are answered at a time, that the next ones wait, and that further ones are
// refused.
func TestManyQuestions(t *testing.T) {
	b := start(t)
	release := make(chan struct{})
	running := make(chan string, 100)
	b.before = func(_ context.Context, name string) error {
		running <- name
		<-release
		return nil
	}
	statuses := make(chan int, 100)
	ask := func(name string) {
		request := b.request(t, http.MethodPost, "/answers/"+name, strings.NewReader(`{}`))
		go func() {
			response, err := b.client.Do(request)
			if err != nil {
				statuses <- 0
				return
			}
			_ = response.Body.Close()
			statuses <- response.StatusCode
		}()
	}
	for range 20 {
		ask(answers.Try)
	}
	for range 20 - 1 - maxWaiting {
		require.Equal(t, http.StatusTooManyRequests, <-statuses)
	}
	require.Equal(t, answers.Try, <-running)
	ask(answers.Overview)
	require.Equal(t, answers.Overview, <-running, "long questions don't delay others")
	require.Equal(t, 2, b.questions())
	close(release)
	for range 1 + maxWaiting + 1 {
		require.Equal(t, http.StatusOK, <-statuses)
	}
}

// TestPendingQuestions checks that questions without a body use up neither the memory nor the turns.
func TestPendingQuestions(t *testing.T) {
	b := start(t)
	var pipes []*io.PipeWriter
	statuses := make(chan int, maxPending)
	for range maxPending {
		read, write := io.Pipe()
		pipes = append(pipes, write)
		request := b.request(t, http.MethodPost, "/answers/overview", read)
		go func() {
			response, err := b.client.Do(request)
			if err == nil {
				_ = response.Body.Close()
				statuses <- response.StatusCode
			} else {
				statuses <- 0
			}
		}()
	}
	require.Eventually(t, func() bool { return b.pending.Load() == maxPending }, time.Minute, time.Millisecond)
	status, body, _ := b.do(t, b.request(t, http.MethodPost, "/answers/overview", strings.NewReader(`{}`)))
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, body, "32 questions")
	for _, pipe := range pipes {
		_, err := pipe.Write([]byte("{}"))
		require.NoError(t, err)
		require.NoError(t, pipe.Close())
		<-statuses
	}
	status, _, _ = b.do(t, b.request(t, http.MethodPost, "/answers/overview", strings.NewReader(`{}`)))
	require.Equal(t, http.StatusOK, status)
}

func TestClientThatLeaves(t *testing.T) {
	b := start(t)
	left := make(chan error, 1)
	began := make(chan struct{})
	b.before = func(ctx context.Context, _ string) error {
		close(began)
		<-ctx.Done()
		left <- ctx.Err()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	request := b.request(t, http.MethodPost, "/answers/overview", strings.NewReader(`{}`)).WithContext(ctx)
	go func() {
		<-began
		cancel()
	}()
	response, err := b.client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, <-left, context.Canceled)
}

func TestEvents(t *testing.T) {
	b := start(t)
	var streams []*bufio.Reader
	open := func() *http.Response {
		response, err := b.client.Do(b.request(t, http.MethodGet, "/events", nil))
		require.NoError(t, err)
		return response
	}
	var bodies []io.Closer
	for range maxStreams {
		response := open()
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
		streams, bodies = append(streams, bufio.NewReader(response.Body)), append(bodies, response.Body)
	}
	next := func(revision int) {
		for _, stream := range streams {
			line, err := stream.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("data: {\"revision\":\"%d\"}\n", revision), line)
			line, err = stream.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "\n", line)
		}
	}
	next(0)
	b.change()
	next(1)
	for range 1000 - maxStreams {
		status, body, _ := b.do(t, b.request(t, http.MethodGet, "/events", nil))
		require.Equal(t, http.StatusTooManyRequests, status)
		require.Contains(t, body, "close other tabs")
	}
	b.change()
	next(2)
	require.NoError(t, bodies[0].Close())
	streams = streams[1:]
	require.Eventually(t, func() bool { return b.streams.Load() == maxStreams-1 }, time.Minute, time.Millisecond)
	response := open()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, b.stop(), "the end of the server ends the streams")
	_, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	for _, body := range bodies[1:] {
		_ = body.Close()
	}
}

// TestEnd checks that no goroutine of the server remains after its end, even if a question is being answered.
func TestEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	b := start(t)
	began := make(chan struct{})
	b.before = func(ctx context.Context, _ string) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}
	answered := make(chan struct{})
	request := b.request(t, http.MethodPost, "/answers/overview", strings.NewReader(`{}`))
	go func() {
		defer close(answered)
		if response, err := b.client.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-began
	require.NoError(t, b.stop())
	<-answered
	b.client.CloseIdleConnections()
	// This goroutine counts, because Eventually would start another one.
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "goroutines remain")
	}
	_, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.listener.Addr().String())
	require.Error(t, err)
}

func TestListenRefuses(t *testing.T) {
	for _, address := range []string{"0.0.0.0", "::", "", "127.0.0.2", "192.0.2.1", "example.com", "LOCALHOST", "127.0.0.1:80", "::ffff:127.0.0.1", "[::1]"} {
		_, err := Listen(t.Context(), address, 0)
		require.ErrorContains(t, err, "must be 127.0.0.1, ::1 or localhost", address)
		require.ErrorContains(t, err, "ssh -L")
	}
	for _, port := range []int{-1, 65536} {
		_, err := Listen(t.Context(), "localhost", port)
		require.ErrorContains(t, err, "must be a port")
	}
	listener, err := Listen(t.Context(), "localhost", 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	require.True(t, listener.Addr().(*net.TCPAddr).IP.IsLoopback())
	_, err = Listen(t.Context(), "localhost", listener.Addr().(*net.TCPAddr).Port)
	require.ErrorContains(t, err, "address already in use")
}

func TestTokensDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token := newToken()
		require.Regexp(t, `^[A-Za-z0-9_-]{43}$`, token)
		require.False(t, seen[token])
		seen[token] = true
	}
}
