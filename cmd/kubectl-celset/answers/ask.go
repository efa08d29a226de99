// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/dynamic-resource-allocation/structured"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
)

// Options hold the settings of the simulated scheduler, and limits.
type Options struct {
	Features structured.Features
	// Args are the arguments of the plugin. Nil means the defaults.
	Args *configv1alpha1.DynamicResourcesCELArgs
	// Timeout is the time limit of one question. Zero means [DefaultTimeout].
	Timeout time.Duration
	// Namespace is the namespace of objects without one. Empty means "default".
	Namespace string
	// Schedulers returns the schedulers of the cluster, for the answers about pods. Nil means that no cluster was read. It is called
	// for each such question, so it must be fast.
	Schedulers func(ctx context.Context) Schedulers
}

// DefaultTimeout is the time limit of one question.
const DefaultTimeout = 10 * time.Second

// maxQuestion is the maximum length of a question in bytes. Documents as JSON may take twice the length of their text.
const maxQuestion = 2*MaxDocuments + 1<<16

// Answers answers questions. Several goroutines may use it.
type Answers struct {
	Options
	source Source

	mutex sync.Mutex
	// last is the view of the last question. mutex guards it.
	last *current
}

// New returns Answers for the objects of a source.
func New(source Source, options Options) *Answers {
	if options.Args == nil {
		options.Args = &configv1alpha1.DynamicResourcesCELArgs{}
		configv1alpha1.SetDefaults(options.Args)
	}
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	if options.Namespace == "" {
		options.Namespace = "default"
	}
	return &Answers{Options: options, source: source}
}

// Answer answers a question. name is one of the names of questions, and question is JSON. An unknown field is an error.
func (a *Answers) Answer(ctx context.Context, name string, question []byte) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.Timeout, fmt.Errorf("the time limit of %s for a question was exceeded", a.Timeout))
	defer cancel()
	switch name {
	case Overview:
		return answer(ctx, question, a.overview)
	case Node:
		return answer(ctx, question, a.node)
	case Explain:
		return answer(ctx, question, a.explain)
	case Try:
		return answer(ctx, question, a.try)
	case Placement:
		return answer(ctx, question, a.placement)
	case Complete:
		return answer(ctx, question, a.complete)
	default:
		return nil, fmt.Errorf("there is no question %q", name)
	}
}

// answer decodes a question and answers it.
func answer[Q, A any](ctx context.Context, raw []byte, of func(context.Context, Q) (A, error)) (any, error) {
	if len(raw) > maxQuestion {
		return nil, fmt.Errorf("the question has %d bytes, but the limit is %d", len(raw), maxQuestion)
	}
	var question Q
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&question); err != nil {
		return nil, fmt.Errorf("the question is not valid: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the question is not valid: there is text after it")
	}
	result, err := of(ctx, question)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// fitOptions returns the options for package fit, with reasons.
func (a *Answers) fitOptions() fit.Options {
	return fit.Options{Features: a.Features, Args: a.Args, Why: true}
}
