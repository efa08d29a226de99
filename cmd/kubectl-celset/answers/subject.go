// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/cmd/kubectl-celset/draw"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/clusterstate"
)

// subjectQuestion is a question about a pod, a claim or a template.
type subjectQuestion struct {
	*Answers
	state   *clusterstate.State
	subject *clusterstate.Subject
	// name is the kind, namespace and name of the subject.
	name string
	// node is the node to draw, or "".
	node string
}

// answer explains the subject.
func (q *subjectQuestion) answer(ctx context.Context) (*SubjectAnswer, error) {
	report, err := fit.Run(ctx, q.state, q.subject, q.fitOptions(ctx, q.subject.Pod))
	if err != nil {
		return nil, err
	}
	q.addServed(ctx, &report.Scheduling, q.state, q.subject)
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		return nil, err
	}
	drawn := q.drawn(report)
	result := &SubjectAnswer{Subject: q.name, Fits: report.Fits(), Verdict: verdictOf(report.Fits(), report.Error, report.Incomplete), Summary: q.summary(report, drawn), Text: text.String()}
	result.Nodes, result.Omitted = verdictsOf(report.Nodes)
	if len(q.subject.Claims) > 0 && len(q.subject.Pending()) == 0 {
		return result, q.drawAllocated(ctx, result)
	}
	if drawn == nil {
		return result, nil
	}
	if drawn.Fits {
		return result, q.drawFit(ctx, result, drawn, report)
	}
	return result, q.drawMiss(ctx, result, drawn)
}

// summary returns the reason for the verdict in one line. If no node fits, it is the reason of the drawn node, or else the most
// frequent reason.
func (q *subjectQuestion) summary(report *fit.Report, drawn *explain.Explanation) string {
	fitting, reasons := 0, map[string]int{}
	for _, node := range report.Nodes {
		if node.Fits {
			fitting++
		} else {
			reasons[firstLine(node.Reason)]++
		}
	}
	number := len(report.Nodes)
	switch {
	case report.Error != "":
		return firstLine(report.Error)
	case len(report.Refused) > 0:
		return firstLine(report.Refused[0])
	case report.Incomplete != "" && fitting == 0:
		return report.Incomplete
	case report.Incomplete != "":
		return fmt.Sprintf("On at least %s: %s", explain.Counted(int64(fitting), "node"), report.Incomplete)
	case fitting > 0 && len(q.subject.Pending()) == 0:
		return "It has its devices."
	case number == 1 && fitting > 0:
		return fmt.Sprintf("On %s, the only node.", report.Nodes[0].Node)
	case fitting > 0:
		return fmt.Sprintf("On %d of %s.", fitting, explain.Counted(int64(number), "node"))
	case number == 0:
		return "There are no nodes."
	case number == 1:
		return fmt.Sprintf("On %s, the only node: %s", report.Nodes[0].Node, firstLine(report.Nodes[0].Reason))
	case drawn != nil:
		return fmt.Sprintf("No node of %d fits. On %s: %s", number, drawn.Node, firstLine(drawn.Reason))
	}
	reason, most := "", 0
	for text, count := range reasons {
		if count > most || count == most && text < reason {
			reason, most = text, count
		}
	}
	return fmt.Sprintf("No node of %d fits. On %s: %s", number, explain.Counted(int64(most), "node"), reason)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// verdictsOf lists the nodes. Nodes that fit come first.
func verdictsOf(nodes []*explain.Explanation) (verdicts []NodeVerdict, omitted int) {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b *explain.Explanation) int {
		if a.Fits == b.Fits {
			return 0
		}
		if a.Fits {
			return -1
		}
		return 1
	})
	for _, node := range sorted[:min(MaxNodes, len(sorted))] {
		verdict := NodeVerdict{Name: node.Node, Fits: node.Fits}
		if !node.Fits {
			verdict.Reason = firstLine(node.Reason)
		}
		for _, claim := range node.Claims {
			for _, device := range claim.Devices {
				verdict.Devices = append(verdict.Devices, device.Driver+"/"+device.Pool+"/"+device.Device)
			}
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, len(sorted) - len(verdicts)
}

// drawn returns the node to draw: the node of the question, or the first that fits, or else the nearest miss.
func (q *subjectQuestion) drawn(report *fit.Report) *explain.Explanation {
	if q.node != "" {
		if i := slices.IndexFunc(report.Nodes, func(e *explain.Explanation) bool { return e.Node == q.node }); i >= 0 {
			return report.Nodes[i]
		}
	}
	if i := slices.IndexFunc(report.Nodes, func(e *explain.Explanation) bool { return e.Fits }); i >= 0 {
		return report.Nodes[i]
	}
	return nearest(report.Nodes)
}

// nearest returns the node that came closest. The most important measure is the number of requested devices that are free. Then
// comes the number of devices that match, and then the number of claims that are in the way. It returns nil if no node has
// devices that match.
func nearest(nodes []*explain.Explanation) *explain.Explanation {
	var best *explain.Explanation
	for _, node := range nodes {
		free, matching := closeness(node)
		if free+matching == 0 {
			continue
		}
		if best == nil {
			best = node
			continue
		}
		bestFree, bestMatching := closeness(best)
		if cmp.Or(cmp.Compare(bestFree, free), cmp.Compare(bestMatching, matching), cmp.Compare(len(node.InTheWay), len(best.InTheWay))) < 0 {
			best = node
		}
	}
	return best
}

// closeness returns how many of the requested devices are free, and how many match. A request counts at most the devices that it
// wants.
func closeness(node *explain.Explanation) (free, matching int) {
	for _, request := range node.Requests {
		wanted := max(request.Wanted, 1)
		free, matching = free+min(request.Free, wanted), matching+min(request.Matching, wanted)
	}
	return free, matching
}

// drawFit draws the devices that the subject would get, lists the steps of the search, and counts further subjects.
func (q *subjectQuestion) drawFit(ctx context.Context, result *SubjectAnswer, drawn *explain.Explanation, report *fit.Report) error {
	node := q.state.Node(drawn.Node)
	part := onNode(q.state, node)
	pending := q.state.PendingOn(q.subject, node)
	chosen := allocated(pending, drawn.Allocations(), "")
	part.Claims = append(slices.DeleteFunc(part.Claims, func(claim *resourceapi.ResourceClaim) bool { return slices.Contains(pending, claim) }), chosen...)
	var err error
	if result.Picture, err = q.picture(ctx, clusterstate.New(part), node, chosen, "devices for "+q.name); err != nil {
		return err
	}
	options := q.fitOptions(ctx, q.subject.Pod)
	options.Nodes, options.Counts = []string{drawn.Node}, true
	counted, err := fit.Run(ctx, q.state, q.subject, options)
	if err != nil {
		return err
	}
	if len(counted.Nodes) == 1 {
		drawn = counted.Nodes[0]
	}
	if result.Steps, err = q.steps(ctx, drawn); err != nil {
		return err
	}
	if report.Fits() {
		result.More = q.more(ctx, report)
	}
	return nil
}

// allocated returns copies of the claims with the allocations. suffix is appended to their names.
func allocated(claims []*resourceapi.ResourceClaim, allocations []resourceapi.AllocationResult, suffix string) []*resourceapi.ResourceClaim {
	var result []*resourceapi.ResourceClaim
	for i := range min(len(claims), len(allocations)) {
		claim := claims[i].DeepCopy()
		claim.Name += suffix
		claim.Status.Allocation = allocations[i].DeepCopy()
		result = append(result, claim)
	}
	return result
}

// drawMiss draws a node where the subject does not fit, with the claims in the way.
func (q *subjectQuestion) drawMiss(ctx context.Context, result *SubjectAnswer, drawn *explain.Explanation) error {
	var err error
	if result.Steps, err = q.steps(ctx, drawn); err != nil {
		return err
	}
	node := q.state.Node(drawn.Node)
	state := clusterstate.New(onNode(q.state, node))
	var inTheWay []*resourceapi.ResourceClaim
	var names []string
	for _, owner := range drawn.InTheWay {
		namespace, name, _ := strings.Cut(owner.Claim, "/")
		if claim := state.Claim(namespace, name); claim != nil {
			inTheWay, names = append(inTheWay, claim), append(names, owner.Claim)
		}
	}
	if len(drawn.Requests) == 0 {
		result.Picture, err = q.picture(ctx, state, node, nil, "the devices were not searched: "+firstLine(drawn.Reason))
		return err
	}
	free, _ := closeness(drawn)
	caption := fmt.Sprintf("the nearest miss: %d of %s free and match", free, explain.Counted(int64(wanted(drawn)), "requested device"))
	if q.node == drawn.Node {
		caption = fmt.Sprintf("%d of %s free and match", free, explain.Counted(int64(wanted(drawn)), "requested device"))
	}
	if len(names) > 0 {
		caption += ", and the highlighted devices are in the way: " + fit.Names(names)
	}
	result.Picture, err = q.picture(ctx, state, node, inTheWay, caption)
	return err
}

func wanted(node *explain.Explanation) (sum int) {
	for _, request := range node.Requests {
		sum += max(request.Wanted, 1)
	}
	return sum
}

// drawAllocated draws the devices that the claims of the subject have.
func (q *subjectQuestion) drawAllocated(ctx context.Context, result *SubjectAnswer) error {
	for _, claim := range q.subject.Claims {
		if len(resultsOf(claim)) == 0 {
			continue
		}
		node := q.state.Node(q.node)
		if node == nil {
			var err error
			if node, err = draw.NodeOf(ctx, q.state, claim, q.Features); err != nil {
				// The node or the slices of the devices may be missing from the objects. Then there is nothing to draw.
				return nil
			}
		}
		var err error
		result.Picture, err = q.picture(ctx, clusterstate.New(onNode(q.state, node)), node, q.subject.Claims, "devices of "+q.name)
		return err
	}
	return nil
}
