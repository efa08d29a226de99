// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
)

// hostileDocuments are documents that would cost too much time or memory without limits, or that are likely to cause a panic.
func hostileDocuments() map[string]string {
	claim := claimWith("          expression: 'true'\n")
	deep := strings.Repeat("[", 20_000)
	bomb := "a0: &a0 [x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i, i, i)
	}
	var many strings.Builder
	for i := 0; many.Len() < answers.MaxDocuments-200; i++ {
		fmt.Fprintf(&many, "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c%d}}\n", i)
	}
	var variables strings.Builder
	variables.WriteString("          variables:\n")
	for i := range 16 {
		fmt.Fprintf(&variables, "          - {name: v%d, expression: \"device.driver\"}\n", i)
	}
	slice := `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d.example.com
  nodeName: node-1
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices:
  - name: <script>alert(1)</script>
    attributes: {x: {string: "</svg><script>"}}
    capacity: {memory: {value: "1e999999999"}}
`
	return map[string]string{
		"deep":          "apiVersion: v1\nkind: Pod\nspec: " + deep,
		"deep JSON":     `{"apiVersion": "v1", "kind": "Pod", "spec": ` + strings.Repeat(`{"a":`, 100_000),
		"aliases":       "apiVersion: v1\nkind: Pod\n" + bomb,
		"own alias":     "apiVersion: v1\nkind: Pod\nspec: &a\n  b: *a\n",
		"many":          many.String(),
		"separators":    strings.Repeat("---\n", answers.MaxDocuments/4),
		"expensive":     strings.Replace(claimWith("          expression: devices.all(a, devices.all(b, devices.all(c, devices.all(d, devices.all(e, devices.exists(f, [a, b, c, d, e, f].all(x, x.driver != 'y')))))))\n"), "count: 2", "count: 8", 1),
		"long":          claimWith("          expression: " + strings.Repeat("(", 5000) + "\n"),
		"huge":          claimWith("          expression: \"" + strings.Repeat("x", answers.MaxDocuments/2) + "\"\n"),
		"variables":     claimWith(variables.String() + "          expression: 'true'\n"),
		"quantities":    slice + "---\n" + claim,
		"count":         strings.Replace(claim, "count: 2", "count: 9223372036854775807", 1),
		"negative":      strings.Replace(claim, "count: 2", "count: -1", 1),
		"null":          "null\n---\n[]\n---\n{}\n---\n\"\"\n---\n? []\n",
		"null fields":   "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: null\nspec: null\n",
		"nested list":   `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "List", "items": [null, 1, {"kind": "List"}]}]}`,
		"bytes":         "apiVersion: \xff\xfe\x00\nkind: Pod\n",
		"tabs":          "apiVersion: v1\n\tkind: Pod\n",
		"carriage":      "apiVersion: v1\r\nkind: Deployment\r\n---\r\nkind: [\r\n",
		"placement":     "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: p}\nspec: {numberOfClusters: -1, predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [\"(((\"]}}}]}\n",
		"decision":      "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecision\nmetadata: {name: p}\nstatus: {decisions: [{}]}\n",
		"group":         "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {}\n",
		"attributes":    "apiVersion: celset.dev/v1alpha1\nkind: DeviceAttributes\nmetadata: {name: a}\nspec: {driver: gpu.nvidia.com, attributes: [{name: x, expression: \"((\"}]}\n---\n" + claim,
		"pod":           "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {resourceClaims: [{name: a}, {name: a, resourceClaimName: a, resourceClaimTemplateName: b}], nodeName: node-1}\n---\n" + claim,
		"same name":     claim + "---\n" + claim,
		"only comments": "# a\n---\n# b\n",
	}
}

// TestHostileDocuments checks that documents cause no panic, and that the answer is bounded in time and size.
func TestHostileDocuments(t *testing.T) {
	a := answers.New(answers.Static(answers.View{Objects: large(t, 2).Objects}), answers.Options{Features: features, Timeout: time.Minute})
	for name, text := range hostileDocuments() {
		for _, machine := range []string{"", "hgx-h100"} {
			t.Run(name+" "+machine, func(t *testing.T) {
				require.LessOrEqual(t, len(text), answers.MaxDocuments)
				question, err := json.Marshal(answers.TryQuestion{Documents: text, Machine: machine, Nodes: 2})
				require.NoError(t, err)
				answer, err := a.Answer(t.Context(), answers.Try, question)
				require.NoError(t, err)
				raw, err := json.Marshal(answer)
				require.NoError(t, err)
				require.Less(t, len(raw), 4<<20)
				require.NotContains(t, string(raw), "<script>", "JSON escapes markup")
				tried := answer.(*answers.TryAnswer)
				require.LessOrEqual(t, len(tried.Subjects), 32)
				require.LessOrEqual(t, len(tried.Problems), 200)
				for _, subject := range tried.Subjects {
					if subject.Picture != nil {
						require.NotContains(t, subject.Picture.SVG, "<script>")
					}
				}
				for _, offset := range []int{0, len(text) / 2, len(text)} {
					question, err := json.Marshal(answers.CompleteQuestion{Documents: text, Offset: offset, Machine: machine})
					require.NoError(t, err)
					_, err = a.Answer(t.Context(), answers.Complete, question)
					require.NoError(t, err)
				}
			})
		}
	}
}

func TestTooLong(t *testing.T) {
	for _, name := range []string{answers.Try, answers.Complete} {
		question, err := json.Marshal(map[string]string{"documents": strings.Repeat("#", answers.MaxDocuments+1)})
		require.NoError(t, err)
		_, err = empty().Answer(t.Context(), name, question)
		require.ErrorContains(t, err, "documents: 1048577 bytes, but the limit is 1048576")
	}
	_, err := empty().Answer(t.Context(), answers.Try, make([]byte, 3<<20))
	require.ErrorContains(t, err, "the question has 3145728 bytes, but the limit is")
}

// TestTimeLimit checks that a question ends when its time is over, and that an answer with the results so far is allowed.
func TestTimeLimit(t *testing.T) {
	a := answers.New(answers.Static(large(t, 2)), answers.Options{Features: features, Timeout: time.Nanosecond})
	_, err := a.Answer(t.Context(), answers.Try, []byte(`{"machine": "hgx-h100", "nodes": 200}`))
	require.ErrorContains(t, err, "the time limit of 1ns for a question was exceeded")
}

func FuzzTry(f *testing.F) {
	for _, text := range hostileDocuments() {
		if len(text) < 10_000 {
			f.Add(text, 10)
		}
	}
	a := answers.New(answers.Static(answers.View{Objects: large(f, 1).Objects}), answers.Options{Features: features, Timeout: 5 * time.Second})
	f.Fuzz(func(t *testing.T, text string, offset int) {
		for name, question := range map[string]any{
			answers.Try: answers.TryQuestion{Documents: text}, answers.Complete: answers.CompleteQuestion{Documents: text, Offset: offset},
		} {
			raw, err := json.Marshal(question)
			require.NoError(t, err)
			_, _ = a.Answer(t.Context(), name, raw)
		}
	})
}
