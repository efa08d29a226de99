// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import "slices"

// assignments visits all ways to give every request of the claim, or one of its
// alternatives, the number of devices it wants, in lexical order: requests as they
// stand, alternatives as they stand, and for one request the devices in ascending
// order. No device stands twice, unless it may be shared: then it may for several
// requests. It stops when visit returns false or an error. The assignment may be
// kept.
//
// Before that, begun sees each assignment to the first requests.
func (c *claim) assignments(begun func(stage) error, visit func([]choice) (bool, error)) error {
	_, err := c.extend(nil, 0, begun, visit)
	return err
}

func (c *claim) extend(chosen []choice, index int, begun func(stage) error, visit func([]choice) (bool, error)) (goOn bool, err error) {
	if index == len(c.requests) {
		return visit(slices.Clone(chosen))
	}
	for _, r := range c.requests[index] {
		if err := begun(stage{chosen: chosen, served: index + 1, last: r}); err != nil {
			return false, err
		}
		goOn, err = r.subsets(func(devices []*device) (bool, error) {
			longer := slices.Clone(chosen)
			for _, d := range devices {
				if !d.shared && slices.ContainsFunc(longer, func(other choice) bool { return other.device == d }) {
					return true, nil
				}
				longer = append(longer, choice{request: r, device: d})
			}
			if err := begun(stage{chosen: longer, served: index + 1, last: r, complete: true}); err != nil {
				return false, err
			}
			return c.extend(longer, index+1, begun, visit)
		})
		if err != nil || !goOn {
			return false, err
		}
	}
	return true, nil
}

// subsets visits the sets of devices that the request could get if it were alone.
// A request for all devices has one, if there are any and all may be used.
func (r *request) subsets(visit func([]*device) (bool, error)) (goOn bool, err error) {
	if r.all && (r.count == 0 || slices.Contains(r.usable, false)) {
		return true, nil
	}
	return r.combinations(nil, 0, visit)
}

func (r *request) combinations(chosen []*device, from int, visit func([]*device) (bool, error)) (goOn bool, err error) {
	if len(chosen) == r.count {
		return visit(chosen)
	}
	for i := from; i < len(r.selected); i++ {
		if !r.usable[i] {
			continue
		}
		goOn, err := r.combinations(append(slices.Clone(chosen), r.selected[i]), i+1, visit)
		if err != nil || !goOn {
			return false, err
		}
	}
	return true, nil
}
