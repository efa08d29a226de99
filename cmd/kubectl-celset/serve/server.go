// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/internal/page"
	"github.com/celset/celset/internal/serving"
)

// patience is the time that requests have to end after the end of [Server.Run] began.
const patience = 2 * time.Second

// Answerer answers questions about devices. Package answers has the names and types of questions.
type Answerer interface {
	// Answer returns the answer to a question, which is JSON. An error is about the question, and the page shows its text.
	Answer(ctx context.Context, name string, question []byte) (any, error)
}

// Changes reports changes of the objects.
type Changes interface {
	// Revision returns the current revision, and a channel that is closed when there is another revision. The channel is nil if
	// the objects never change.
	Revision() (revision string, changed <-chan struct{})
}

// Options configure a server. All fields are required.
type Options struct {
	Answers Answerer
	Changes Changes
	// Names lists the questions that Answers can answer.
	Names []string
	// Log gets messages about connections and panics.
	Log io.Writer
}

// Server serves the page, questions and events.
type Server struct {
	Options
	access
	listener net.Listener
	http     *http.Server
	page     http.Handler
	// turns limits the questions that are answered at the same time. Each kind of question takes its turns, so that a long
	// search does not delay completions.
	turns *fairness.Turns
	// pending and streams count the unanswered questions and the event streams.
	pending, streams atomic.Int32
}

// New returns a server for a listener of [Listen].
func New(listener net.Listener, options Options) (*Server, error) {
	at, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("listen at %s: not a TCP port", listener.Addr())
	}
	s := &Server{
		Options:  options,
		access:   newAccess(at.Port),
		listener: listener,
		page:     page.Handler(page.Configuration{Backend: page.HTTP}),
		turns:    fairness.NewTurns(concurrent, maxWaiting),
	}
	s.http = serving.New(context.Background(), s)
	s.http.ErrorLog = log.New(options.Log, "", 0)
	return s, nil
}

// URL returns the URL of the page. The token is in the fragment, which browsers don't send.
func (s *Server) URL() string { return fmt.Sprintf("http://%s/#token=%s", s.listener.Addr(), s.token) }

// Run serves until ctx ends. Requests in progress are then interrupted.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(s.listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// The requests that use ctx end by themselves.
	waiting, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	err := s.http.Shutdown(waiting)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	if served := <-ended; err == nil && !errors.Is(served, http.ErrServerClosed) {
		err = served
	}
	return err
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	page.SetHeader(w.Header())
	if err := s.ownPage(request); err != nil {
		refuse(w, http.StatusForbidden, err)
		return
	}
	name, isQuestion := strings.CutPrefix(request.URL.Path, "/answers/")
	method, handle := http.MethodGet, s.stream
	switch {
	case isQuestion:
		method, handle = http.MethodPost, func(w http.ResponseWriter, request *http.Request) { s.question(w, request, name) }
	case request.URL.Path != "/events":
		s.page.ServeHTTP(w, request)
		return
	}
	if request.Method != method {
		w.Header().Set("Allow", method)
		refuse(w, http.StatusMethodNotAllowed, fmt.Errorf("the method %s is not allowed here: use %s", request.Method, method))
		return
	}
	if err := s.authorized(request); err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, err)
		return
	}
	handle(w, request)
}

// refuse sends an error. It closes the connection, so that the server does not read the rest of the body.
func refuse(w http.ResponseWriter, status int, err error) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	body, _ := json.Marshal(map[string]string{"error": err.Error()})
	reply(w, status, body)
}

func reply(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	if status != http.StatusOK {
		header.Set("Connection", "close")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // An error means that the client is gone.
}
