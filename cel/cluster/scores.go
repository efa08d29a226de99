// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/apis/setscores"
)

const (
	scoresFunction = "scores"

	// QuantitiesAnnotation is the annotation of an AddOnPlacementScore with the quantities behind its values: a JSON object
	// from score name to quantity.
	QuantitiesAnnotation = setscores.QuantitiesAnnotation

	wrongReceiver = "%s() can only be called on " + clusterVariable
)

// Hub is the data that expressions read in addition to the cluster.
type Hub struct {
	// Scores finds AddOnPlacementScores. If it is nil, no score exists.
	Scores ScoreFinder
	// Now is the time that is compared with validUntil. Zero means the current time.
	Now time.Time
	// Clock is the value of now() (see [Moment]). Zero means Now rounded down to [DefaultTick]. Callers use the same Clock for
	// all clusters of one decision.
	Clock time.Time
}

// ScoreFinder finds an AddOnPlacementScore by namespace, which is the name of the cluster, and by name. It returns nil if there
// is no such object. It must be safe for concurrent use. Callers don't modify the results.
type ScoreFinder interface {
	FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error)
}

// ScoreFinderFunc is a function that implements [ScoreFinder].
type ScoreFinderFunc func(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error)

// FindScore calls the function.
func (f ScoreFinderFunc) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	return f(namespace, name)
}

// scores implements <cluster>.scores(<string>).
func scores(receiver, name ref.Val) ref.Val {
	cluster, ok := receiver.(*input)
	if !ok {
		return types.NewErr(wrongReceiver, scoresFunction)
	}
	resource, ok := name.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	found := cluster.find(string(resource))
	if found.err != nil {
		return types.WrapErr(found.err)
	}
	return scoreItems(found.object)
}

// scoresRead returns the AddOnPlacementScore that a call of scores() or sets() reads. It returns nil if the object does not
// exist or has expired.
func scoresRead(function string, args []ref.Val) *clusterv1alpha1.AddOnPlacementScore {
	cluster, ok := args[0].(*input)
	if !ok || len(args) < 2 {
		return nil
	}
	if function == setsFunction {
		return cluster.find(setscores.Name).object
	}
	name, _ := args[1].(types.String)
	return cluster.find(string(name)).object
}

// scoresSize returns the number of bytes that a call of scores() or sets() reads: the annotation and the items.
func scoresSize(object *clusterv1alpha1.AddOnPlacementScore) float64 {
	const perItem = 50
	if object == nil {
		return 0
	}
	return float64(len(object.Annotations[QuantitiesAnnotation]) + perItem*len(object.Status.Scores))
}

// foundScores is the result of looking up one name: the object or an error.
type foundScores struct {
	object *clusterv1alpha1.AddOnPlacementScore
	err    error
}

// scoresSeen has the results of the lookups so far. Usually only one name is looked up, so only further names need a map.
type scoresSeen struct {
	first  string
	is     foundScores
	any    bool
	others map[string]foundScores
}

// find looks up the scores with the name, once per cluster. So all evaluations on the cluster read the same scores.
func (i *input) find(name string) foundScores {
	seen := &i.looks().scores
	if seen.any && seen.first == name {
		return seen.is
	}
	if found, ok := seen.others[name]; ok {
		return found
	}
	var found foundScores
	found.object, found.err = i.hub().find(i.name, name)
	switch {
	case !seen.any:
		seen.any, seen.first, seen.is = true, name, found
	case seen.others == nil:
		seen.others = map[string]foundScores{name: found}
	default:
		seen.others[name] = found
	}
	return found
}

// find returns the valid scores with the name, or an error. An empty list instead of the error would satisfy all(), and so
// select clusters without scores.
func (h Hub) find(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	var object *clusterv1alpha1.AddOnPlacementScore
	if h.Scores != nil {
		var err error
		if object, err = h.Scores.FindScore(namespace, name); err != nil {
			return nil, fmt.Errorf("get AddOnPlacementScore %s/%s: %w", namespace, name, err)
		}
	}
	if object == nil {
		return nil, fmt.Errorf("AddOnPlacementScore %s/%s not found", namespace, name)
	}
	if until := object.Status.ValidUntil; until != nil && orNow(h.Now).After(until.Time) {
		return nil, fmt.Errorf("AddOnPlacementScore %s/%s expired at %s", namespace, name, until.UTC().Format(time.RFC3339))
	}
	return object, nil
}

// orNow returns the current time for a zero time.
func orNow(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now()
	}
	return t
}

// scored is the CEL value of one item of an AddOnPlacementScore.
type scored struct {
	*clusterv1alpha1.AddOnPlacementScoreItem
	quantities map[string]string
	// bad is the error of a malformed annotation, or nil. Only expressions that read a quantity fail with this error.
	bad ref.Val
}

var scoredKeys = []string{"name", "quantity", "value"}

func (s scored) find(key string) (ref.Val, bool) {
	switch key {
	case "name":
		return types.String(s.Name), true
	case "value":
		return types.Int(s.Value), true
	case "quantity":
		if s.bad != nil {
			return s.bad, true
		}
		return quantityOf(s.AddOnPlacementScoreItem, s.quantities), true
	default:
		return nil, false
	}
}

func (s scored) keys() []string { return scoredKeys }

func (s scored) count() int { return len(scoredKeys) }

// scoreItems returns the CEL list of the items. It allocates all items at once, and converts a field of an item only when an
// expression reads it.
func scoreItems(object *clusterv1alpha1.AddOnPlacementScore) ref.Val {
	quantities, err := quantitiesOf(object)
	items, values := make([]mapping[scored], len(object.Status.Scores)), make([]ref.Val, len(object.Status.Scores))
	for i := range items {
		items[i].fields = scored{&object.Status.Scores[i], quantities, nil}
		if err != nil {
			items[i].fields.bad = types.WrapErr(err)
		}
		values[i] = &items[i]
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

func quantitiesOf(object *clusterv1alpha1.AddOnPlacementScore) (map[string]string, error) {
	annotation, ok := object.Annotations[QuantitiesAnnotation]
	if !ok {
		return nil, nil
	}
	var result map[string]string
	if err := json.Unmarshal([]byte(annotation), &result); err != nil {
		return nil, fmt.Errorf("the annotation %s of AddOnPlacementScore %s/%s must be a JSON object of strings: %w",
			QuantitiesAnnotation, object.Namespace, object.Name, err)
	}
	return result, nil
}

var wholeNumber = regexp.MustCompile(`^[+-]?[0-9]+$`)

// quantityOf returns the quantity of an item: an int if it is a plain whole number, and its text otherwise.
func quantityOf(score *clusterv1alpha1.AddOnPlacementScoreItem, quantities map[string]string) ref.Val {
	text, ok := quantities[score.Name]
	if !ok {
		return types.Int(score.Value)
	}
	if wholeNumber.MatchString(text) {
		if number, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(number)
		}
	}
	return types.String(text)
}
