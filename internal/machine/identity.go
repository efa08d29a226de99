// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
)

// Values that differ between nodes are computed from the name of the node, so that a model is reproducible.

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// onNode replaces these placeholders in the value of an attribute:
//
//	${uuid PART...}      a UUID
//	${id DIGITS PART...} hexadecimal digits
//	${address A B}       the node's address in the network A.B.0.0/16
//	${place PART NODES}  identifies a part of the network with so many nodes
func onNode(value, node string) string {
	return placeholder.ReplaceAllStringFunc(value, func(text string) string {
		words := strings.Fields(text[len("${") : len(text)-len("}")])
		kind, parts := words[0], words[1:]
		switch kind {
		case "uuid":
			return uuid(append([]string{node}, parts...)...)
		case "id":
			return fingerprint(append([]string{node}, parts[1:]...)...)[:atoi(parts[0])]
		case "address":
			const byteValues = 1 << 8
			host := hostNumber(node)
			return fmt.Sprintf("%s.%s.%d.%d/16", parts[0], parts[1], host/byteValues, host%byteValues)
		case "place":
			return fingerprint(parts[0], fmt.Sprint((hostNumber(node)-1)/atoi(parts[1])))
		default:
			panic("unknown placeholder " + text) // tests read all models
		}
	})
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// fingerprint returns an identifier of 32 hexadecimal digits, computed from the parts.
func fingerprint(parts ...string) string {
	hash := fnv.New128a()
	for _, part := range parts {
		// Write the length, so that the parts "a", "bc" differ from "ab", "c". Writing to a hash never fails.
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// uuid returns a fingerprint in the form of a UUID.
func uuid(parts ...string) string {
	digits := fingerprint(parts...)
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

// maxHost is the number of the last host in a network with 16 bits for the host.
const maxHost = 1<<16 - 2

// hostNumber returns a number from 1 to maxHost for a node. Nodes with a number in their name get different numbers: node-7
// gets 8.
func hostNumber(node string) int {
	digits := node[len(strings.TrimRight(node, "0123456789")):]
	if number, err := strconv.ParseUint(digits, 10, 32); err == nil {
		return int(number%maxHost) + 1
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node))
	return int(hash.Sum32()%maxHost) + 1
}
