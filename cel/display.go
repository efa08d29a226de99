// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
)

// A long expression on one line can have a mistake in each word. Printed with the line and a
// caret for each, that is a text of many megabytes, which takes long to make and ends up in
// conditions, events and logs.

const (
	// maxMessage is the length of a message, in bytes: it may have a text in it that the
	// expression made, or the types of a thousand arguments.
	maxMessage = 1024
	// maxMistakes is how many mistakes of one expression are printed.
	maxMistakes = 10
	// maxLine is how many characters of a line are printed around a mistake.
	maxLine = 1024
)

func shortened(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// displayAll prints the first mistakes, and how many more there are.
func displayAll(source common.Source, mistakes []*cel.Error) string {
	shown := make([]string, 0, maxMistakes+1)
	for _, mistake := range mistakes[:min(len(mistakes), maxMistakes)] {
		shown = append(shown, display(source, mistake.Location, mistake.Message))
	}
	if more := len(mistakes) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, "\n")
}

// display prints message with the line of the source and a caret below it, as CEL does. Of a
// long line it prints what is near.
func display(source common.Source, at common.Location, message string) string {
	mistake := &common.Error{Location: at, Message: shortened(message)}
	line, _ := source.Snippet(at.Line())
	if len(line) <= maxLine {
		return mistake.ToDisplayString(source)
	}
	characters := []rune(line)
	start := min(max(0, at.Column()-maxLine/2), len(characters))
	near := &common.Error{Location: common.NewLocation(1, at.Column()-start), Message: mistake.Message}
	window := common.NewStringSource(string(characters[start:min(start+maxLine, len(characters))]), source.Description())
	return heading(mistake, source) + strings.TrimPrefix(near.ToDisplayString(window), heading(near, window))
}

// heading is what CEL prints before the line.
func heading(mistake *common.Error, source common.Source) string {
	at := mistake.Location
	return fmt.Sprint("ERROR: ", source.Description(), ":", at.Line(), ":", at.Column()+1, ": ", mistake.Message)
}
