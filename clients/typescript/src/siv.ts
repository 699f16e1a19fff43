import { createCipheriv, timingSafeEqual } from 'node:crypto'

// AES-SIV with 512 bits and one associated datum (RFC 5297), which Node.js has no name for. It needs no
// nonce: the first block is a code of datum and text, and the counter that the text is encrypted with.

const BLOCK = 16
const ZEROS = Buffer.alloc(BLOCK)

/** A text encrypted by a key of 64 bytes, 16 bytes longer. */
export function seal(key: Buffer, text: Buffer, datum: Buffer): Buffer {
  const code = codeOf(key, text, datum)
  return Buffer.concat([code, crypt(key, code, text)])
}

/** The text that was sealed; undefined for what was not sealed with this key and this datum. */
export function open(key: Buffer, sealed: Buffer, datum: Buffer): Buffer | undefined {
  if (sealed.length < BLOCK) return undefined
  const code = sealed.subarray(0, BLOCK)
  const text = crypt(key, code, sealed.subarray(BLOCK))
  return timingSafeEqual(codeOf(key, text, datum), code) ? text : undefined
}

/** The second half of the key encrypts, with a counter that begins with the code. */
function crypt(key: Buffer, code: Buffer, text: Buffer): Buffer {
  const counter = Buffer.from(code)
  counter[8]! &= 0x7f
  counter[12]! &= 0x7f
  return createCipheriv(`aes-${key.length * 4}-ctr`, key.subarray(key.length / 2), counter).update(text)
}

/** S2V of the RFC for one datum; the first half of the key makes codes. */
function codeOf(key: Buffer, text: Buffer, datum: Buffer): Buffer {
  const codes = key.subarray(0, key.length / 2)
  const mixed = xor(doubled(cmac(codes, ZEROS)), cmac(codes, datum))
  if (text.length < BLOCK) return cmac(codes, xor(doubled(mixed), padded(text)))
  const at = text.length - BLOCK
  return cmac(codes, Buffer.concat([text.subarray(0, at), xor(text.subarray(at), mixed)]))
}

/** That of RFC 4493: the last block of CBC, after a mark of how the message ends. */
function cmac(key: Buffer, message: Buffer): Buffer {
  const once = doubled(chained(key, ZEROS))
  const whole = message.length > 0 && message.length % BLOCK === 0
  const at = whole ? message.length - BLOCK : message.length - (message.length % BLOCK)
  const rest = message.subarray(at)
  const last = whole ? xor(rest, once) : xor(padded(rest), doubled(once))
  return chained(key, Buffer.concat([message.subarray(0, at), last]))
}

/** The last block of whole ones that are chained by CBC. */
function chained(key: Buffer, blocks: Buffer): Buffer {
  const cipher = createCipheriv(`aes-${key.length * 8}-cbc`, key, ZEROS).setAutoPadding(false)
  return cipher.update(blocks).subarray(-BLOCK)
}

/** A block times x, in the field of 2 to the 128. */
function doubled(given: Buffer): Buffer {
  const found = Buffer.from(given.map((each, i) => (each << 1) | ((given[i + 1] ?? 0) >> 7)))
  found[BLOCK - 1]! ^= (given[0]! >> 7) * 0x87
  return found
}

/** Less than a block, filled with a bit and zeros. */
function padded(given: Buffer): Buffer {
  return Buffer.concat([given, Buffer.of(0x80), ZEROS], BLOCK)
}

function xor(one: Buffer, other: Buffer): Buffer {
  return Buffer.from(one.map((each, i) => each ^ other[i]!))
}
