// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/answers/playground"
	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/testing/cases"
)

// TestWebAssembly compiles the program for browsers, runs it with Node.js, and compares its answers with the native answers: for
// each example, and for its claims on each machine.
func TestWebAssembly(t *testing.T) {
	cases.OnlyNightly(t, "compiles all of celset for WebAssembly, which takes minutes")
	node, err := exec.LookPath("node")
	require.NoError(t, err, "install Node.js")
	program, err := compile(t.Context(), "../..")
	require.NoError(t, err)
	again, err := compile(t.Context(), "../..")
	require.NoError(t, err)
	require.True(t, bytes.Equal(program, again), "the program is reproducible")
	packed, err := pack(program)
	require.NoError(t, err)
	require.Less(t, len(packed), 12<<20, "a page with the program must load fast")
	path := filepath.Join(t.TempDir(), "celset.wasm")
	require.NoError(t, os.WriteFile(path, program, 0o600))
	goroot, err := output(t.Context(), ".", nil, "go", "env", "GOROOT")
	require.NoError(t, err)

	questions := wasmQuestions(t)
	require.GreaterOrEqual(t, len(questions), 300)
	var input bytes.Buffer
	for _, question := range questions {
		raw, err := json.Marshal([]string{answers.Try, question})
		require.NoError(t, err)
		input.Write(append(raw, '\n'))
	}
	// The program goes on after a question that it can't answer, and after one that is not valid.
	input.WriteString(`["none", "{}"]` + "\n" + `["overview", "{}"]` + "\n")
	command := exec.CommandContext(t.Context(), node, "testdata/ask.js", filepath.Join(goroot, "lib", "wasm", "wasm_exec.js"), path)
	command.Stdin, command.Stderr = &input, os.Stderr
	raw, err := command.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	require.Len(t, lines, len(questions)+2)

	page := playground.New(time.Hour)
	slowest, fitting := 0, 0
	for i, line := range lines {
		var got struct {
			Answer, Error string
			Milliseconds  int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &got))
		switch i {
		case len(questions):
			require.Equal(t, `there is no question "none"`, got.Error)
			continue
		case len(questions) + 1:
			require.Contains(t, got.Answer, `"machines"`)
			continue
		}
		require.Empty(t, got.Error)
		slowest = max(slowest, got.Milliseconds)
		want, err := page.Answer(t.Context(), answers.Try, questions[i])
		require.NoError(t, err)
		var native, browser answers.TryAnswer
		require.NoError(t, json.Unmarshal([]byte(want), &native))
		require.NoError(t, json.Unmarshal([]byte(got.Answer), &browser))
		require.Equal(t, native.Problems, browser.Problems, questions[i])
		require.Len(t, browser.Subjects, len(native.Subjects))
		for k := range native.Subjects {
			require.Equal(t, native.Subjects[k].Nodes, browser.Subjects[k].Nodes, questions[i])
			require.Equal(t, native.Subjects[k].Text, browser.Subjects[k].Text)
			require.Equal(t, native.Subjects[k].Picture, browser.Subjects[k].Picture)
			if native.Subjects[k].Fits {
				fitting++
			}
		}
	}
	t.Logf("%d questions, %d subjects fit, %d ms for the slowest; %d bytes, %d compressed", len(questions), fitting, slowest, len(program), len(packed))
	require.NotZero(t, fitting)
}

// TestDependencies checks that the program for browsers has no client of an API server. Such a client would double its size. The
// nightly tests compile the program.
func TestDependencies(t *testing.T) {
	found, err := output(t.Context(), "../..", []string{"GOOS=js", "GOARCH=wasm"}, "go", "list", "-deps", "./cmd/celset-playground")
	require.NoError(t, err)
	require.True(t, strings.Contains(found, "github.com/celset/celset/cmd/kubectl-celset/answers\n"))
	for _, client := range []string{"k8s.io/client-go/", "k8s.io/cli-runtime/", "k8s.io/kubernetes/", "sigs.k8s.io/controller-runtime/"} {
		require.False(t, strings.Contains(found, client), client)
	}
}

func question(t *testing.T, q answers.TryQuestion) string {
	t.Helper()
	raw, err := json.Marshal(q)
	require.NoError(t, err)
	return string(raw)
}

// wasmQuestions returns a question about each example, and a question about its claims on each machine, with devices in use.
func wasmQuestions(t *testing.T) (questions []string) {
	examples, err := examplesOf(t.Context(), "../..")
	require.NoError(t, err)
	for _, one := range examples {
		if one.Group == "Placements" || one.Group == "Gangs" {
			questions = append(questions, question(t, answers.TryQuestion{Documents: one.Documents}))
			continue
		}
		questions = append(questions, question(t, answers.TryQuestion{Documents: one.Documents, Machine: one.Machine, Nodes: one.Nodes, InUse: one.InUse}))
		for _, name := range machine.Names() {
			questions = append(questions, question(t, answers.TryQuestion{Documents: one.Documents, Machine: name, Nodes: 2, InUse: 3}))
		}
	}
	return questions
}
