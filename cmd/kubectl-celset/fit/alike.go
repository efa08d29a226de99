// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/celset/celset/allocator/explain"
)

const (
	// maxSingle is the number of nodes with the same answer that are printed separately.
	maxSingle = 3
	// maxNamed is the number of names in a list that continues with a count.
	maxNamed = 3
	// maxAnswers is the maximum number of different answers in the text. The data contains all answers.
	maxAnswers = 50
)

// Names returns the first names and the number of further names.
func Names(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// answer is the text for nodes that differ only in their names.
type answer struct {
	text  string
	nodes []*explain.Explanation
}

// printNodes prints nodes in order. If many nodes have the same answer, it prints the first and counts the others.
func printNodes(b *strings.Builder, nodes []*explain.Explanation) {
	var answers []*answer
	byText := map[string]*answer{}
	for _, n := range nodes {
		text := answerText(n)
		if byText[text] == nil {
			byText[text] = &answer{text: text}
			answers = append(answers, byText[text])
		}
		byText[text].nodes = append(byText[text].nodes, n)
	}
	if len(answers) <= maxAnswers && !slices.ContainsFunc(answers, func(a *answer) bool { return len(a.nodes) > maxSingle }) {
		for _, n := range nodes {
			n.Print(b)
		}
		return
	}
	left := 0
	for i, a := range answers {
		if i >= maxAnswers {
			left += len(a.nodes)
			continue
		}
		single := a.nodes
		if len(single) > maxSingle {
			single = single[:1]
		}
		for _, n := range single {
			n.Print(b)
		}
		a.printMore(b, a.nodes[len(single):])
	}
	if left > 0 {
		fmt.Fprintf(b, "  %s with %s: -o yaml has all\n", explain.Counted(int64(left), "more node"), explain.Counted(int64(len(answers)-maxAnswers), "other answer"))
	}
}

// printMore counts the nodes with the same answer as the printed node.
func (a *answer) printMore(b *strings.Builder, more []*explain.Explanation) {
	if len(more) == 0 {
		return
	}
	names := make([]string, len(more))
	for i, n := range more {
		names[i] = n.Node
	}
	said := "yes"
	if !more[0].Fits {
		said = "no: " + more[0].Reason
	}
	fmt.Fprintf(b, "  %s: %s: %s\n", explain.Counted(int64(len(more)), "more node"), said, Names(names))
}

// answerText returns the text for a node, without its name and the search's cost.
func answerText(e *explain.Explanation) string {
	var b strings.Builder
	without := *e
	without.Node, without.Evaluations, without.Proven = "", 0, 0
	without.Print(&b)
	// Pools usually have the name of their node.
	return strings.NewReplacer("/"+e.Node+"/", "//", "/"+e.Node+" ", "/ ", "/"+e.Node+":", "/:").Replace(b.String())
}
