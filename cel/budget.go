// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import "fmt"

// Budget is the cost, in CEL cost units, that a group of evaluations may spend together. A function call that takes longer than
// its CEL cost suggests is charged one unit for each 250 ns (Expense.Units of package cel/meter), so a charged unit never takes
// much longer. A Budget is not safe for concurrent use. A nil Budget has no limit.
type Budget struct {
	limit uint64
	spent uint64
}

// NewBudget returns a Budget of limit cost units.
func NewBudget(limit uint64) *Budget {
	return &Budget{limit: limit}
}

// Spent returns the cost of all evaluations so far.
func (b *Budget) Spent() uint64 {
	if b == nil {
		return 0
	}
	return b.spent
}

// Charge adds the cost of an evaluation over devices. The evaluation may be an earlier one whose result is reused. The error is
// an [*Error] with [ReasonBudget].
func (b *Budget) Charge(cost uint64) error { return b.charge(cost, adviceOnDevices) }

func (b *Budget) charge(cost uint64, advice Advice) error {
	if b == nil {
		return nil
	}
	b.spent += cost
	if b.spent <= b.limit {
		return nil
	}
	return &Error{
		Reason:  ReasonBudget,
		Message: fmt.Sprintf("the evaluations together exceed the cost budget of %d: %s", b.limit, advice.Budget),
	}
}
