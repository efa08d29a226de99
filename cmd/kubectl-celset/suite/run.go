// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/clusterstate"
)

// Options are the options of [Run].
type Options struct {
	// Features returns the features of the scheduler with the feature gates of a case.
	Features func(gates map[string]bool) (structured.Features, error)
	// Only selects cases by their names. Nil selects all cases.
	Only *regexp.Regexp
	// Timeout is the time limit for a case.
	Timeout time.Duration
	// Update writes the answers of cases that fail, or that have no expectation, into the files.
	Update bool
	// Recursive also runs the files in subdirectories of a directory.
	Recursive bool
}

// Run runs the cases of files and directories. It returns an error if a path can't be read, or if there are no cases.
func Run(ctx context.Context, paths []string, options Options) (*Report, error) {
	files, err := find(paths, options.Recursive)
	if err != nil {
		return nil, err
	}
	report := &Report{Meta: output.NewMeta(output.ExpressionTestReport), Files: []File{}}
	start := time.Now()
	for _, path := range files {
		file := options.file(ctx, path)
		report.Files = append(report.Files, file)
		for _, c := range file.Cases {
			report.add(c.Outcome)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	report.Seconds = seconds(time.Since(start))
	if report.cases() == 0 && !report.IsUnanswered() {
		return nil, fmt.Errorf("--run %q: no case has a name that matches: change the expression", options.Only)
	}
	return report, nil
}

// file runs the cases of a file.
func (o *Options) file(ctx context.Context, path string) (file File) {
	file = File{Name: path, Cases: []Result{}}
	start := time.Now()
	defer func() { file.Seconds = seconds(time.Since(start)) }()
	s, wrong := read(path)
	if len(wrong) > 0 {
		file.Mistakes = wrong
		return file
	}
	r := &reader{folder: filepath.Dir(path), known: map[string][]clusterstate.Document{}}
	changed := map[int]*Expectations{}
	for i := range s.test.Cases {
		c := &s.test.Cases[i]
		if o.Only != nil && !o.Only.MatchString(c.Name) || ctx.Err() != nil {
			continue
		}
		begin := time.Now()
		result, a := o.one(ctx, r, s.test.With(&c.Setting), c)
		result.Line = s.lineOf(fmt.Sprintf("cases[%d]", i))
		if o.Update && result.Outcome == Failed {
			if e, complete := c.Expect.updated(a, result.Failures); complete {
				changed[i], result.Outcome, result.Failures = e, Updated, nil
			}
		}
		result.Seconds = seconds(time.Since(begin))
		file.Cases = append(file.Cases, result)
	}
	if len(changed) > 0 {
		if err := s.update(changed); err != nil {
			file.Mistakes = []Mistake{{Message: fmt.Sprintf("--update: %v", err)}}
		}
	}
	for _, c := range file.Cases {
		file.add(c.Outcome)
	}
	return file
}

// one runs a case. The answer may be nil if the outcome is Error.
func (o *Options) one(ctx context.Context, r *reader, s Setting, c *Case) (Result, *answer) {
	result := Result{Name: c.Name, Outcome: Error}
	if c.Expect.isEmpty() && !o.Update {
		result.Error = "expect: the case has no expectation: add one, or let --update add the answer"
		return result, nil
	}
	features, err := o.Features(s.FeatureGates)
	if err != nil {
		result.Error = "featureGates: " + err.Error()
		return result, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("--timeout: the time limit of %s was exceeded: set a higher limit", o.Timeout))
	defer cancel()
	in, err := r.input(ctx, s)
	if err != nil {
		result.Error = err.Error()
		return result, nil
	}
	result.Warnings = in.warnings
	a, err := in.ask(ctx, &c.Expect, features, o.Timeout)
	if err == nil {
		result.Failures, err = c.Expect.judge(ctx, a)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		result.Error = context.Cause(ctx).Error()
	case err != nil:
		result.Error = err.Error()
	case len(result.Failures) > 0 || c.Expect.isEmpty():
		result.Outcome = Failed
	default:
		result.Outcome, result.Warnings = Passed, nil
	}
	return result, a
}
