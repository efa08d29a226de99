// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answers answers the questions of the web page about devices. The page sends each question as JSON with a name. The
// command serve passes the questions over HTTP, and the playground passes them to WebAssembly. Other packages compute the
// results: fit for pods and claims, gang for groups, placements for Placements, check for mistakes, draw for pictures.
//
//	a := answers.New(source, answers.Options{Features: features, Args: args})
//	answer, err := a.Answer(ctx, answers.Try, question)
//
// An error of Answer is about the question, and the page shows its text. Mistakes in the objects are in the answer.
package answers

// The names of the questions.
const (
	// Overview lists nodes, waiting pods and claims, groups and Placements. The question is an empty object, and the answer is
	// an [OverviewAnswer].
	Overview = "overview"
	// Node describes the devices of one node. The question is a [NodeQuestion], and the answer is a [NodeAnswer].
	Node = "node"
	// Explain explains a pod, a claim, a template or a group of the source. The question is an [ExplainQuestion], and the answer
	// is a [SubjectAnswer].
	Explain = "explain"
	// Try tries documents, in addition to the objects of the source. The question is a [TryQuestion], and the answer is a
	// [TryAnswer].
	Try = "try"
	// Placement decides a Placement of the source. The question is a [PlacementQuestion], and the answer is a report.Report.
	Placement = "placement"
	// Complete completes the text at a position of a document. The question is a [CompleteQuestion], and the answer is a
	// [CompleteAnswer].
	Complete = "complete"
)

// OverviewAnswer lists the objects of the source. Its lists are sorted by name.
type OverviewAnswer struct {
	// Origin says where the objects come from, for example "context kind-dev".
	Origin string `json:"origin"`
	// Revision changes if an object changes.
	Revision string `json:"revision"`
	// Live is set if the source follows changes.
	Live     bool     `json:"live"`
	Warnings []string `json:"warnings,omitempty"`
	// Machines lists the machines that a question can name.
	Machines   []Machine          `json:"machines"`
	Nodes      []NodeSummary      `json:"nodes"`
	Waiting    []Waiting          `json:"waiting"`
	Groups     []GroupSummary     `json:"groups"`
	Placements []PlacementSummary `json:"placements"`
}

// Machine is a model of a machine whose devices a question can use.
type Machine struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Drivers []string `json:"drivers"`
}

// NodeSummary counts the devices of a node.
type NodeSummary struct {
	Name    string   `json:"name"`
	Drivers []string `json:"drivers"`
	Devices int      `json:"devices"`
	// Allocated is the number of devices that a claim has, with shared devices. Unusable is the number of devices with a taint
	// that prevents allocation.
	Allocated int `json:"allocated"`
	Unusable  int `json:"unusable,omitempty"`
}

// Waiting is a pod without a node, or a claim without devices. A claim that a pod without a node uses is not listed.
type Waiting struct {
	// Subject is the argument of the question [Explain], for example "pod/train". Namespace is the namespace of the object.
	Subject   string `json:"subject"`
	Namespace string `json:"namespace"`
	// Since is the time of creation in RFC 3339, or "" if it is unknown.
	Since string `json:"since,omitempty"`
	// Message is the message of the condition PodScheduled.
	Message string `json:"message,omitempty"`
	// Group is the name of the PodGroup of the pod.
	Group string `json:"group,omitempty"`
}

// GroupSummary describes a PodGroup.
type GroupSummary struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Constraint is the name of the node set constraint, or "" without one.
	Constraint string `json:"constraint,omitempty"`
	Running    int    `json:"running"`
	Waiting    int    `json:"waiting"`
	// Message is the message of the first condition with status False.
	Message string `json:"message,omitempty"`
}

// PlacementSummary describes a Placement on a hub.
type PlacementSummary struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Selected is the number of clusters in the PlacementDecisions.
	Selected int `json:"selected"`
	// Satisfied is the status of the condition PlacementSatisfied, or "". Message is the message of the condition.
	Satisfied string `json:"satisfied,omitempty"`
	Message   string `json:"message,omitempty"`
}

// NodeQuestion asks about a node.
type NodeQuestion struct {
	Name string `json:"name"`
	// Claim is the claim to highlight, as "namespace/name", or "".
	Claim string `json:"claim,omitempty"`
}

// NodeAnswer describes the devices of a node.
type NodeAnswer struct {
	Picture
}

// Device is a device of a node.
type Device struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Name   string `json:"name"`
	// Attributes maps names of attributes to values as text.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Taints lists taints that prevent allocation, as key=value:effect.
	Taints  []string `json:"taints,omitempty"`
	Holders []Holder `json:"holders,omitempty"`
}

// Holder is a claim that has a device or a share of it.
type Holder struct {
	// Claim is "namespace/name".
	Claim   string `json:"claim"`
	Request string `json:"request,omitempty"`
	// ReservedFor lists the pods, or other users, in status.reservedFor of the claim.
	ReservedFor []string `json:"reservedFor,omitempty"`
	Shared      bool     `json:"shared,omitempty"`
	AdminAccess bool     `json:"adminAccess,omitempty"`
}

// Picture is a drawing of a node or of the nodes for a group.
type Picture struct {
	// Node is the name of the node, or "" for a drawing of several nodes.
	Node string `json:"node,omitempty"`
	// Caption says what is highlighted, for example "devices for claim default/train".
	Caption string `json:"caption"`
	// SVG is an svg element without styles. The page contains the rules of draw.Stylesheet for its classes.
	SVG string `json:"svg"`
	// Devices lists the devices of the node, in the state that the picture shows.
	Devices []Device `json:"devices,omitempty"`
}

// ExplainQuestion asks about an object of the source.
type ExplainQuestion struct {
	// Subject is "kind/name", as for the command explain. Namespace is the namespace of the object.
	Subject   string `json:"subject"`
	Namespace string `json:"namespace"`
	// Node is the node to draw, or "" for the first that fits, or else the nearest miss.
	Node string `json:"node,omitempty"`
}

// SubjectAnswer explains where a pod, a claim, a group or a Placement would get its devices, nodes or clusters.
type SubjectAnswer struct {
	// Subject is the kind, namespace and name, for example "claim default/train".
	Subject string `json:"subject"`
	// Fits is set if the answer is positive. Verdict distinguishes the other answers.
	Fits    bool    `json:"fits"`
	Verdict Verdict `json:"verdict"`
	// Summary is the reason for the verdict in one line. It does not repeat the verdict.
	Summary string `json:"summary"`
	// Text is the output of the command explain.
	Text string `json:"text"`
	// Nodes lists the nodes that were checked. Nodes that fit come first. It is limited to [MaxNodes]; Omitted counts the others.
	Nodes   []NodeVerdict `json:"nodes,omitempty"`
	Omitted int           `json:"omitted,omitempty"`
	// Steps lists how the search for the drawn node narrowed the devices.
	Steps []Step `json:"steps,omitempty"`
	// More says how many more subjects like this one would fit. It is nil if the subject does not fit or has its devices, for a
	// group, a pod of a group and a Placement, and for a pod with conditions that are not checked, such as anti-affinity.
	More *More `json:"more,omitempty"`
	// Picture draws the chosen devices or nodes. If nothing fits, it draws the nearest miss. It is nil without devices.
	Picture *Picture `json:"picture,omitempty"`
	// Placement is the report of a Placement, and nil for others. The report has the form of placement/report.
	Placement any `json:"placement,omitempty"`
}

// Verdict is the answer in one word.
type Verdict string

// The verdicts.
const (
	// Fits means that a node, or a set of nodes or clusters, was found.
	Fits Verdict = "Fits"
	// DoesNotFit means that the search was complete, and nothing was found.
	DoesNotFit Verdict = "DoesNotFit"
	// Unknown means that the search ended at a time limit.
	Unknown Verdict = "Unknown"
	// Failed means that a mistake in the objects, or a limit, prevented the search.
	Failed Verdict = "Error"
)

// verdictOf returns the verdict on a report.
func verdictOf(fits bool, failure, incomplete string) Verdict {
	switch {
	case failure != "":
		return Failed
	case fits:
		return Fits
	case incomplete != "":
		return Unknown
	default:
		return DoesNotFit
	}
}

// NodeVerdict says whether the claims of a subject fit on a node.
type NodeVerdict struct {
	Name string `json:"name"`
	Fits bool   `json:"fits"`
	// Reason is the reason why the claims don't fit. Devices lists the devices that they would get.
	Reason  string   `json:"reason,omitempty"`
	Devices []string `json:"devices,omitempty"`
}

// Step is a step of the search on one node.
type Step struct {
	// Text says what was required, for example "free", or the text of a condition.
	Text string `json:"text"`
	// Left is the number of devices that remain after the step, or -1 if the step does not count devices.
	Left int `json:"left"`
	// Failed is set for the step that no set of devices passes.
	Failed bool `json:"failed,omitempty"`
}

// More counts further subjects.
type More struct {
	Count int `json:"count"`
	// AtLeast is set if the search for more ended at a limit.
	AtLeast bool `json:"atLeast,omitempty"`
}

// TryQuestion tries documents.
type TryQuestion struct {
	// Documents is YAML, with several documents if needed. At most [MaxDocuments] bytes.
	Documents string `json:"documents"`
	// Machine is the name of a machine, and Nodes the number of nodes of that machine. They replace the nodes and devices of
	// the source and of the documents. If the name is empty, the nodes of the source and of the documents are used.
	Machine string `json:"machine,omitempty"`
	Nodes   int    `json:"nodes,omitempty"`
	// InUse is the number of devices on each node that are allocated to other claims, for a question with a machine.
	InUse int `json:"inUse,omitempty"`
	// Node is the node to draw, as in [ExplainQuestion].
	Node string `json:"node,omitempty"`
}

// TryAnswer is the answer for documents.
type TryAnswer struct {
	Problems []Problem `json:"problems"`
	// Subjects has an answer for each pod, Placement and group with a node set constraint in the documents, and for each pending claim
	// and each template that no pod in the documents uses.
	Subjects []SubjectAnswer `json:"subjects"`
}

// Problem is a mistake in the documents.
type Problem struct {
	// Severity is "error" or "warning".
	Severity string `json:"severity"`
	Message  string `json:"message"`
	// Line and Column are the position in the documents, counted from 1, or 0 if it is unknown. Column counts UTF-16 units.
	Line   int `json:"line"`
	Column int `json:"column"`
}

// PlacementQuestion asks for the decision on a Placement.
type PlacementQuestion struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Without is the index of a predicate to leave out, or nil.
	Without *int `json:"without,omitempty"`
	// Now is the time of the decision in RFC 3339, or "" for the current time.
	Now string `json:"now,omitempty"`
}

// CompleteQuestion asks for completions.
type CompleteQuestion struct {
	Documents string `json:"documents"`
	// Offset is the position in the documents, in UTF-16 units.
	Offset int `json:"offset"`
	// Machine is the machine whose attributes are completed, or "" for the source.
	Machine string `json:"machine,omitempty"`
}

// CompleteAnswer lists completions.
type CompleteAnswer struct {
	// From is the position where the completed word begins, in UTF-16 units.
	From    int          `json:"from"`
	Options []Completion `json:"options"`
}

// Completion is a text that can be inserted.
type Completion struct {
	Label string `json:"label"`
	// Detail is a type, such as "string" or "function". Info is a sentence.
	Detail string `json:"detail,omitempty"`
	Info   string `json:"info,omitempty"`
	// Apply is the inserted text, or "" for Label.
	Apply string `json:"apply,omitempty"`
}

// Limits of questions and answers.
const (
	// MaxDocuments is the maximum length of documents in bytes.
	MaxDocuments = 1 << 20
	// MaxNodes is the maximum number of nodes in a [SubjectAnswer].
	MaxNodes = 200
)
