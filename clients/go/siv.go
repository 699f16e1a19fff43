package belfry

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
)

// AES-SIV with 512 bits and one associated datum (RFC 5297), which Go has no package for. It needs no
// nonce: the first block is a code of datum and text, and the counter that the text is encrypted with.

const block = aes.BlockSize

// siv is a cipher: the first half of the key makes codes, the second encrypts.
type siv struct{ codes, stream cipher.Block }

func newSIV(key []byte) (siv, error) {
	codes, err := aes.NewCipher(key[:len(key)/2])
	if err != nil {
		return siv{}, err
	}
	stream, err := aes.NewCipher(key[len(key)/2:])
	return siv{codes, stream}, err
}

func (s siv) seal(text, datum []byte) []byte {
	code := s.code(text, datum)
	return append(code, s.crypt(code, text)...)
}

// open is false for what was not sealed with this key and this datum.
func (s siv) open(sealed, datum []byte) ([]byte, bool) {
	if len(sealed) < block {
		return nil, false
	}
	text := s.crypt(sealed[:block], sealed[block:])
	if subtle.ConstantTimeCompare(s.code(text, datum), sealed[:block]) == 0 {
		return nil, false
	}
	return text, true
}

func (s siv) crypt(code, text []byte) []byte {
	counter := append([]byte(nil), code...)
	counter[8] &= 0x7f
	counter[12] &= 0x7f
	found := make([]byte, len(text))
	cipher.NewCTR(s.stream, counter).XORKeyStream(found, text)
	return found
}

// code is S2V of the RFC for one datum.
func (s siv) code(text, datum []byte) []byte {
	mixed := doubled(s.cmac(make([]byte, block)))
	subtle.XORBytes(mixed, mixed, s.cmac(datum))
	last := append([]byte(nil), text...)
	if len(text) < block {
		mixed, last = doubled(mixed), padded(text)
	}
	tail := last[len(last)-block:]
	subtle.XORBytes(tail, tail, mixed)
	return s.cmac(last)
}

// cmac is that of RFC 4493: the last block of CBC, after a mark of how the message ends.
func (s siv) cmac(message []byte) []byte {
	mark := make([]byte, block)
	s.codes.Encrypt(mark, mark)
	mark = doubled(mark)
	chained := append([]byte(nil), message...)
	if rest := len(message) % block; rest != 0 || len(message) == 0 {
		mark = doubled(mark)
		chained = append(chained[:len(chained)-rest], padded(message[len(message)-rest:])...)
	}
	tail := chained[len(chained)-block:]
	subtle.XORBytes(tail, tail, mark)
	cipher.NewCBCEncrypter(s.codes, make([]byte, block)).CryptBlocks(chained, chained)
	return chained[len(chained)-block:]
}

// doubled is a block times x, in the field of 2 to the 128.
func doubled(given []byte) []byte {
	found := make([]byte, block)
	for i, each := range given {
		found[i] = each << 1
		if i+1 < block {
			found[i] |= given[i+1] >> 7
		}
	}
	found[block-1] ^= given[0] >> 7 * 0x87
	return found
}

// padded is less than a block, filled with a bit and zeros.
func padded(given []byte) []byte {
	found := make([]byte, block)
	copy(found, given)
	found[len(given)] = 0x80
	return found
}
