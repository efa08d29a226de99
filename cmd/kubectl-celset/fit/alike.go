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
	// maxSingle is the maximum number of nodes with the same answer that are all printed. With more nodes, only the first is
	// printed and the others are counted.
	maxSingle = 3
	// maxNamed is the maximum number of names in a list. The list ends with the number of further names.
	maxNamed = 3
	// maxAnswers is the maximum number of different answers in the text output. The output as JSON or YAML has all answers.
	maxAnswers = 50
)

// Names returns the first maxNamed names as a list, and the number of further names.
func Names(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// answer groups nodes whose texts differ only in the names of the nodes.
type answer struct {
	text  string
	nodes []*explain.Explanation
}

// printNodes prints the nodes' answers. If more than maxSingle nodes have the same answer, it prints the first and counts the
// others.
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

// printMore prints how many further nodes have the same answer.
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

// answerText returns the text of a node's answer, without the name of the node and the cost of the search, so that equal
// answers have equal texts.
func answerText(e *explain.Explanation) string {
	var b strings.Builder
	without := *e
	without.Node, without.Evaluations, without.Proven = "", 0, 0
	without.Print(&b)
	// The names of pools usually contain the name of their node, so it is removed from them, too.
	return strings.NewReplacer("/"+e.Node+"/", "//", "/"+e.Node+" ", "/ ", "/"+e.Node+":", "/:").Replace(b.String())
}
