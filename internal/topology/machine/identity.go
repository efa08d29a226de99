// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// What differs from node to node is a function of the node's name, so that a model is the
// same whenever it is asked for.

// fingerprint stands for an identifier of which nobody knows more than that it is unique:
// 32 hexadecimal digits.
func fingerprint(parts ...string) string {
	hash := fnv.New128a()
	for _, part := range parts {
		// A length keeps "a", "bc" and "ab", "c" apart. Hashes never fail to write.
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// uuid is a fingerprint in the form of a UUID.
func uuid(parts ...string) string {
	digits := fingerprint(parts...)
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

// maxHost is the last address of a network with 16 bits for the host.
const maxHost = 1<<16 - 2

// hostNumber is 1 to maxHost. Nodes that are numbered get different ones: node-7 has 8.
func hostNumber(node string) int {
	digits := node[len(strings.TrimRight(node, "0123456789")):]
	if number, err := strconv.ParseUint(digits, 10, 32); err == nil {
		return int(number%maxHost) + 1
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node))
	return int(hash.Sum32()%maxHost) + 1
}

// scattered is the numbers from 0 to n-1 in an order that is none, always the same.
func scattered(n int) []int {
	// Odd, so that for a power of two each number comes once.
	const stride, start = 5, 3
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = (start + i*stride) % n
	}
	return numbers
}
