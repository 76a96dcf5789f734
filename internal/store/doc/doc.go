// Package doc writes and reads the JSON documents that the store keeps beside its columns.
//
// The text is what encoding/json would write for the same struct, with every zero value left out and a version in
// front: {"v":1,"name":"train",…}. encoding/json can read it, and so can people. This package exists because a
// restart decodes hundreds of thousands of documents and a submission encodes three: a Codec is computed once per
// type, follows the json tags, and then needs neither reflection nor an allocation per string (equal strings are kept
// once per Decoder).
//
// A field that is added to a struct is stored from then on without a line here. Types the codec has no fast path for
// (maps, floats, own marshallers) go through encoding/json.
package doc
