// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/cmd/kubectl-celset/answers"
)

const (
	// concurrent is the maximum number of questions that are answered at the same time. maxWaiting is the maximum number of
	// waiting questions of one kind.
	concurrent = 2
	maxWaiting = 8
	// maxPending is the maximum number of requests with questions, including those whose body has not arrived.
	maxPending = 32
	// maxQuestion is the maximum size of a question in bytes. In JSON, a line break or a quotation mark of the documents takes two
	// bytes.
	maxQuestion = 2*answers.MaxDocuments + 64<<10
	// answerTime is the time limit for a question, including the time that it waits.
	answerTime = 55 * time.Second
)

var (
	errPending = fmt.Errorf("%d questions are not answered yet: try again later", maxPending)
	errWaiting = fmt.Errorf("%d questions of this kind are waiting: try again later", maxWaiting)
	errLarge   = fmt.Errorf("the question is too large: the limit is %d bytes", maxQuestion)
	errType    = errors.New("the body has another type than application/json: send the question with Content-Type: application/json")
	errJSON    = errors.New("the body is not JSON: send a question as JSON")
	errPanic   = errors.New("internal error: the reason is in the output of \"kubectl celset serve\"")
	errTime    = fmt.Errorf("the answer takes more than %s: ask about fewer nodes or devices", answerTime)
)

// question answers a question.
func (s *Server) question(w http.ResponseWriter, request *http.Request, name string) {
	defer s.pending.Add(-1)
	if s.pending.Add(1) > maxPending {
		refuse(w, http.StatusTooManyRequests, errPending)
		return
	}
	if !slices.Contains(s.Names, name) {
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no question of this name: use one of %v", s.Names))
		return
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), answerTime, errTime)
	defer cancel()
	body, status, err := readQuestion(w, request)
	if err != nil {
		refuse(w, status, err)
		return
	}
	end, err := s.turns.Take(ctx, name)
	if errors.Is(err, fairness.ErrTooMany) {
		refuse(w, http.StatusTooManyRequests, errWaiting)
		return
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, cause(ctx, err))
		return
	}
	answer, status, err := s.answer(ctx, name, body)
	end()
	if err != nil {
		refuse(w, status, cause(ctx, err))
		return
	}
	reply(w, http.StatusOK, answer)
}

// readQuestion returns the body of a request, or an error with the HTTP status.
func readQuestion(w http.ResponseWriter, request *http.Request) ([]byte, int, error) {
	media, _, err := mime.ParseMediaType(request.Header.Get("Content-Type"))
	if err != nil || media != "application/json" || request.Header.Get("Content-Encoding") != "" {
		return nil, http.StatusUnsupportedMediaType, errType
	}
	if request.ContentLength > maxQuestion {
		return nil, http.StatusRequestEntityTooLarge, errLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxQuestion))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, http.StatusRequestEntityTooLarge, errLarge
	}
	if err != nil {
		return nil, http.StatusRequestTimeout, errors.New("the question did not arrive in time")
	}
	if !json.Valid(body) {
		return nil, http.StatusBadRequest, errJSON
	}
	return body, http.StatusOK, nil
}

// answer returns the answer as JSON, or an error with the HTTP status.
func (s *Server) answer(ctx context.Context, name string, question []byte) (encoded []byte, status int, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			_, _ = fmt.Fprintf(s.Log, "error: question %s: panic: %v\n%s", name, reason, debug.Stack())
			status, err = http.StatusInternalServerError, errPanic
		}
	}()
	answer, err := s.Answers.Answer(ctx, name, question)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	encoded, err = json.Marshal(answer)
	return encoded, http.StatusInternalServerError, err
}

// cause returns the reason why ctx ended, or err.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}
