// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package prioritizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/finding"
)

// maxWeight is the largest weight that a policy may have. The smallest weight is -maxWeight.
const maxWeight = 10

// Prioritizer is a prioritizer of a Placement. Its weight is not zero.
type Prioritizer struct {
	// Name is the name of a built-in prioritizer, or AddOn/<resource name>/<score name>.
	Name string
	// Weight is multiplied with each score.
	Weight int32

	score scorer
}

// Describe returns a sentence that says which clusters the prioritizer prefers.
func (p Prioritizer) Describe() string { return p.score.describe() }

// Reads returns the inputs on which the scores depend.
func (p Prioritizer) Reads() Reads { return p.score.reads() }

var builtIn = map[string]scorer{
	Steady:                    steadily{},
	Balance:                   balanced{},
	ResourceAllocatableCPU:    allocatable{ResourceAllocatableCPU, clusterv1.ResourceCPU},
	ResourceAllocatableMemory: allocatable{ResourceAllocatableMemory, clusterv1.ResourceMemory},
}

// additive lists the prioritizers that have weight 1 in the mode Additive, unless the policy gives them another weight.
var additive = []string{Balance, Steady}

// FromPolicy returns the prioritizers of a policy whose weight is not zero. Default prioritizers come first.
func FromPolicy(policy *clusterv1beta1.PrioritizerPolicy, wrong *finding.Misconfigurations) []Prioritizer {
	path := field.NewPath("spec", "prioritizerPolicy")
	var result []Prioritizer
	switch policy.Mode {
	case "", clusterv1beta1.PrioritizerPolicyModeAdditive:
		for _, name := range additive {
			result = append(result, Prioritizer{Name: name, Weight: 1, score: builtIn[name]})
		}
	case clusterv1beta1.PrioritizerPolicyModeExact:
	default:
		wrong.Add(finding.Prioritizers, path.Child("mode"),
			fmt.Sprintf("incorrect prioritizer policy mode: %s; use Additive or Exact", policy.Mode))
	}
	seen := map[string]*field.Path{}
	for i := range policy.Configurations {
		at := path.Child("configurations").Index(i)
		one, ok := configured(&policy.Configurations[i], at, wrong)
		if first := seen[one.Name]; ok && first != nil {
			wrong.Add(finding.Prioritizers, at, fmt.Sprintf("%s is already configured by %s; remove one of them", one.Name, first))
			continue
		}
		if ok {
			seen[one.Name] = at
			result = slices.DeleteFunc(result, func(p Prioritizer) bool { return p.Name == one.Name })
			result = append(result, one)
		}
	}
	return slices.DeleteFunc(result, func(p Prioritizer) bool { return p.Weight == 0 })
}

// configured returns the prioritizer for one configuration of the policy. The second result is false if the configuration is
// invalid.
func configured(from *clusterv1beta1.PrioritizerConfig, path *field.Path, wrong *finding.Misconfigurations) (Prioritizer, bool) {
	before := len(*wrong)
	if from.Weight < -maxWeight || from.Weight > maxWeight {
		wrong.Add(finding.Prioritizers, path.Child("weight"), fmt.Sprintf("the weight %d must be from %d to %d", from.Weight, -maxWeight, maxWeight))
	}
	if from.ScoreCoordinate != nil && from.Weight == 0 {
		// The weight 0 disables the prioritizer. As in Open Cluster Management, an unknown name is then not a mistake.
		result := coordinate(from.ScoreCoordinate, path, &finding.Misconfigurations{})
		return result, result.Name != ""
	}
	result := coordinate(from.ScoreCoordinate, path.Child("scoreCoordinate"), wrong)
	result.Weight = from.Weight
	return result, len(*wrong) == before
}

// coordinate returns the prioritizer that a score coordinate names. As in Open Cluster Management, every type except BuiltIn
// means AddOn.
func coordinate(from *clusterv1beta1.ScoreCoordinate, path *field.Path, wrong *finding.Misconfigurations) Prioritizer {
	switch {
	case from == nil:
		wrong.Add(finding.Prioritizers, path, "scoreCoordinate should not be empty")
	case from.Type == clusterv1beta1.ScoreCoordinateTypeBuiltIn:
		if score, ok := builtIn[from.BuiltIn]; ok {
			return Prioritizer{Name: from.BuiltIn, score: score}
		}
		message := fmt.Sprintf("incorrect builtin prioritizer: %s; use one of %s", from.BuiltIn,
			strings.Join(slices.Sorted(maps.Keys(builtIn)), ", "))
		if from.BuiltIn == finding.Spread {
			message += "; to spread decisions, use spec.spreadPolicy"
		}
		wrong.Add(finding.Prioritizers, path.Child("builtIn"), message)
	case from.AddOn == nil:
		wrong.Add(finding.Prioritizers, path.Child("addOn"), "addOn should not be empty unless the type is BuiltIn")
	default:
		return Prioritizer{Name: addOnName(from.AddOn), score: addOn{*from.AddOn}}
	}
	return Prioritizer{}
}

// Prioritize sets the scores and totals of the candidates. It clamps each score to its range, because clusters may report any
// number. So totals can't overflow: an object can't contain enough prioritizers. observe is called with the name of each
// prioritizer when it starts. The function that observe returns is called when the prioritizer ends.
func Prioritize(in *Inputs, prioritizers []Prioritizer, candidates []*candidate.Candidate, observe func(name string) (end func())) error {
	all := make([]int64, len(candidates)*len(prioritizers))
	for i, c := range candidates {
		c.Scores = all[i*len(prioritizers) : (i+1)*len(prioritizers) : (i+1)*len(prioritizers)]
	}
	for j, p := range prioritizers {
		end := observe(p.Name)
		scores, err := p.score.score(in, candidates)
		end()
		if err != nil {
			return err
		}
		for i, score := range scores {
			score = min(max(score, MinScore), MaxScore)
			candidates[i].Scores[j] = score
			candidates[i].Total += int64(p.Weight) * score
		}
	}
	return nil
}
