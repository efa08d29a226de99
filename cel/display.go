// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
)

// A long expression on one line can have a mistake in each word. Printing the whole line for each mistake would take long and
// make a text of many megabytes. This text would end up in conditions, events and logs. So this file prints only parts of long
// lines.

const (
	// maxMessage is the maximum length of a message in bytes. Messages may be long, because a message can quote a text that the
	// expression computed, or list the types of a thousand arguments.
	maxMessage = 1024
	// maxMistakes is the maximum number of printed mistakes per expression.
	maxMistakes = 10
	// maxLine is the maximum number of characters of a line printed around a mistake.
	maxLine = 1024
	// margin is the text that CEL prints before a line of the expression.
	margin = "\n |"
)

func shortened(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// displayAll prints the first maxMistakes mistakes, and the number of further mistakes.
func displayAll(expression string, mistakes []*cel.Error) string {
	shown := make([]string, 0, maxMistakes+1)
	for _, mistake := range mistakes[:min(len(mistakes), maxMistakes)] {
		shown = append(shown, display(expression, mistake.Location, mistake.Message))
	}
	if more := len(mistakes) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, "\n")
}

// display prints message, the line of the expression and a caret below the mistake, as CEL does. It takes linear time in the
// length of the line, whereas CEL takes quadratic time. For a long line it prints only the part around the mistake.
func display(expression string, at common.Location, message string) string {
	var text strings.Builder
	fmt.Fprint(&text, "ERROR: <input>:", at.Line(), ":", at.Column()+1, ": ", shortened(message))
	line, found := lineOf(expression, at.Line())
	if !found {
		return text.String()
	}
	before, after := cut(line, max(0, at.Column()))
	if len(line) > maxLine {
		count := utf8.RuneCountInString(before)
		_, before = cut(before, count-maxLine/2)
		after, _ = cut(after, maxLine-min(count, maxLine/2))
	}
	text.WriteString(margin + " " + strings.ReplaceAll(before+after, "\t", " "))
	text.WriteString(margin + " ")
	for _, character := range before {
		text.WriteString(asWide(character, ".", "\uff0e"))
	}
	below, _ := utf8.DecodeRuneInString(after)
	if after == "" {
		below = ' '
	}
	text.WriteString(asWide(below, "^", "\uff3e"))
	return text.String()
}

// lineOf returns a line of an expression, counted from 1.
func lineOf(expression string, number int) (string, bool) {
	if number < 1 || expression == "" {
		return "", false
	}
	for line := range strings.SplitSeq(expression, "\n") {
		if number--; number == 0 {
			return line, true
		}
	}
	return "", false
}

// cut splits a line after a number of characters, or at the end of a shorter line.
func cut(line string, characters int) (before, after string) {
	for i := range line {
		if characters <= 0 {
			return line[:i], line[i:]
		}
		characters--
	}
	return line, ""
}

// asWide returns wide if the character is outside ASCII, otherwise narrow. CEL treats all characters outside ASCII as twice as
// wide, as East Asian characters are, so the characters below them must be wide, too.
func asWide(character rune, narrow, wide string) string {
	if character >= utf8.RuneSelf {
		return wide
	}
	return narrow
}
