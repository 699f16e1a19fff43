package belfry

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/twmb/franz-go/pkg/kgo"
)

const signatureHeader = "belfry-signature"

// Sign puts the proof that a request is its tenant's behind the headers of its record. It has to be
// the last thing that is done to the record.
func Sign(secret []byte, tenant string, record *kgo.Record) {
	mac := hmac.New(sha256.New, secret)
	field := func(given []byte) {
		size := uint32(len(given))
		if given == nil {
			size = 0xffffffff
		}
		mac.Write(binary.BigEndian.AppendUint32(nil, size))
		mac.Write(given)
	}
	field([]byte(tenant))
	field(record.Key)
	field(record.Value)
	for _, each := range record.Headers {
		field([]byte(each.Key))
		field(each.Value)
	}
	record.Headers = append(record.Headers, header(signatureHeader, hex.EncodeToString(mac.Sum(nil))))
}
