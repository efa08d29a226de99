// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !js || !wasm

// Outside of a browser, the program answers questions from the standard input. Each line is a name, a space, and JSON.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/answers/playground"
)

func main() {
	page, lines := playground.New(0), bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 4*answers.MaxDocuments)
	for lines.Scan() {
		name, question, _ := strings.Cut(lines.Text(), " ")
		answer, err := page.Answer(context.Background(), name, question)
		if err != nil {
			answer = "error: " + err.Error()
		}
		fmt.Println(answer)
	}
	if err := lines.Err(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "celset-playground:", err)
		os.Exit(1)
	}
}
