// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Command celset-playground answers the questions of a page about devices in a browser. It has no objects of its own: a question
// contains documents, and names the model of a machine. When the program is ready, it calls the global function celsetReady with
// a function answer(name, json), whose result is a Promise of {answer: json} or {error: text}.
package main

import (
	"context"
	"syscall/js"

	"github.com/celset/celset/cmd/kubectl-celset/answers/playground"
)

func main() {
	questions := make(chan question)
	js.Global().Call("celsetReady", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return promise(func(resolve js.Value) {
			asked := question{resolve: resolve}
			if len(args) == 2 && args[0].Type() == js.TypeString && args[1].Type() == js.TypeString {
				asked.name, asked.json = args[0].String(), args[1].String()
			}
			// A callback must not block, so a goroutine waits for the turn of the question.
			go func() { questions <- asked }()
		})
	}))
	page := playground.New(0)
	page.WarmUp()
	for asked := range questions {
		answer, err := page.Answer(context.Background(), asked.name, asked.json)
		if err != nil {
			asked.resolve.Invoke(map[string]any{"error": err.Error()})
			continue
		}
		asked.resolve.Invoke(map[string]any{"answer": answer})
	}
}

// question is a question of the page. resolve resolves the Promise of its answer.
type question struct {
	name, json string
	resolve    js.Value
}

// promise returns a Promise. start gets the function that resolves it.
func promise(start func(resolve js.Value)) js.Value {
	var executor js.Func
	executor = js.FuncOf(func(_ js.Value, args []js.Value) any {
		start(args[0])
		executor.Release()
		return nil
	})
	return js.Global().Get("Promise").New(executor)
}
