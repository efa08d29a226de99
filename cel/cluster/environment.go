// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"unicode/utf8"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/compat"
	"github.com/celset/celset/cel/meter"
)

const (
	clusterVariable = "managedCluster"

	// ClusterCostLimit is the maximum cost, in CEL cost units, of all expressions of one selector on one cluster.
	ClusterCostLimit = 10_000_000

	// maxCharacters is the maximum length of an expression in code points. It is the limit of CEL's parser, because Open
	// Cluster Management sets no lower one.
	maxCharacters = 100_000
)

var advice = cel.Advice{
	Evaluation: "nest fewer macros, or narrow the lists that they go through",
	Budget:     "write fewer or cheaper expressions",
}

// Environment compiles selectors. It is safe for concurrent use.
type Environment struct {
	core *cel.Environment
	// limit is the maximum cost of one evaluation.
	limit uint64
}

// NewEnvironment returns an environment with the cost limit, the cache size and the observer of config. It ignores the other
// fields of config.
func NewEnvironment(config cel.Config) (*Environment, error) {
	base, err := celgo.NewEnv(libraries()...)
	if err != nil {
		return nil, fmt.Errorf("set up the libraries for clusters: %w", err)
	}
	if config.CostLimit == 0 {
		config.CostLimit = cel.DefaultCostLimit
	}
	core, err := cel.NewEnvironment(cel.Config{
		Name:              clusterVariable,
		Base:              base,
		Options:           declarations(),
		OptimizeConstants: true,
		Meter:             meter.Config{OperatorsAsCEL: true, ChargesTexts: true, ReadsMakeLists: true},
		MaxLength:         maxCharacters * utf8.UTFMax,
		CostLimit:         config.CostLimit,
		Costs:             newCosts(),
		Advice:            advice,
		NamesNearest:      true,
		CacheBytes:        config.CacheBytes,
		Observer:          config.Observer,
	})
	if err != nil {
		return nil, err
	}
	return &Environment{core: core, limit: config.CostLimit}, nil
}

// Functions returns the declarations of all functions and operators, by name.
func (e *Environment) Functions() map[string]*decls.FunctionDecl { return e.core.Functions() }

// libraries returns Open Cluster Management's CEL libraries and more, so that its expressions compile. Kubernetes' environment
// can't be used, because it rejects lists of mixed types and has an older strings library.
func libraries() []celgo.EnvOption {
	return []celgo.EnvOption{
		celgo.OptionalTypes(),
		ext.Strings(),
		ext.Math(),
		ext.Sets(),
		ext.Bindings(),
		ext.TwoVarComprehensions(),
		compat.Lists(),
		library.Regex(),
		library.URLs(),
		library.Quantity(),
		library.IP(),
		library.CIDR(),
		library.Format(),
		library.SemverLib(library.SemverVersion(1)),
	}
}

func declarations() []celgo.EnvOption {
	scored := []*celgo.Type{celgo.MapType(celgo.StringType, celgo.DynType), celgo.StringType}
	text := []*celgo.Type{celgo.StringType}
	shape := []*celgo.Type{scored[0], celgo.StringType, celgo.StringType, celgo.IntType}
	counts := celgo.MapType(celgo.StringType, celgo.IntType)
	return append(nowDeclarations(),
		celgo.Variable(clusterVariable, scored[0]),
		celgo.Function(scoresFunction,
			celgo.MemberOverload("cluster_scores_string", scored, celgo.ListType(celgo.DynType), celgo.BinaryBinding(scores))),
		celgo.Function(setsFunction,
			celgo.MemberOverload("cluster_sets_string_string_int", shape, counts, celgo.FunctionBinding(publishedSets))),
		celgo.Function(parseJSONFunction,
			celgo.Overload("parse_json_string", text, celgo.DynType, celgo.UnaryBinding(parseJSON)),
			celgo.MemberOverload("string_parse_json", text, celgo.DynType, celgo.UnaryBinding(parseJSON))),
		celgo.ASTValidators(scoresReceiver{}),
	)
}
