// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/corpus"
)

// notUnderstood are the expressions of the corpus of which a conjunct is open.
var notUnderstood = map[string]string{
	"ring: by place":                             "distinct may panic, and what it is asked about depends on places",
	"coupled: the same roots in order":           "two lists are compared place by place",
	"sockets: two requests on different sockets": "slices depend on places",
}

// Every conjunct of the expressions that people write is understood, but for a few.
func TestCorpusIsUnderstood(t *testing.T) {
	e := environment(t)
	understood := 0
	for _, x := range corpus.Expressions() {
		compiled, err := e.Compile(x.Text)
		require.NoError(t, err)
		size := 0
		for _, request := range x.Requests {
			size += request.Count
		}
		_, not := notUnderstood[x.Name]
		require.Equal(t, not, bound.Analyze(compiled, size).Open() > 0, "%s\n%s", x.Name, x.Text)
		if !not {
			understood++
		}
	}
	t.Logf("%d expressions, all but %d understood in every conjunct", len(corpus.Expressions()), len(notUnderstood))
	require.Equal(t, len(corpus.Expressions())-len(notUnderstood), understood)
}
