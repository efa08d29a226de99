// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

func Example() {
	environment, err := cluster.NewEnvironment(cel.Config{})
	if err != nil {
		panic(err)
	}
	selector, err := environment.Compile(context.Background(), expressions(
		`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.29.0"))`,
		`managedCluster.metadata.?labels["cloud"].orValue("") in ["aws", "gcp"]`,
	), nil)
	if err != nil {
		panic(err)
	}
	verdict, err := selector.Match(context.Background(), cluster.New(cluster1()), cluster.Hub{})
	fmt.Println(verdict.Matches, err)
	// Output: true <nil>
}

func ExampleEnvironment_Compile_error() {
	_, err := environment.Compile(context.Background(), expressions(`true`, `managedCluster.metadata.name = "a"`), nil)
	fmt.Println(err)
	// Output:
	// celSelector.celExpressions[1]: ERROR: <input>:1:30: Syntax error: token recognition error at: '= '
	//  | managedCluster.metadata.name = "a"
	//  | .............................^
	// ERROR: <input>:1:32: Syntax error: extraneous input '"a"' expecting <EOF>
	//  | managedCluster.metadata.name = "a"
	//  | ...............................^
}
