import assert from 'node:assert/strict'
import { it } from 'node:test'
import { formatBytes } from './readable-bytes.ts'

it('a readable size has the largest unit that it fills, to a tenth', () => {
  for (const [bytes, text] of [
    [0, '0 bytes'],
    [1_023, '1023 bytes'],
    [1_024, '1.0 KiB'],
    [1_073_741_823, '1.0 GiB'],
    [73_387_077_632, '68.3 GiB'],
    [99_999 * 2 ** 40, '99999.0 TiB'],
  ] as const)
    assert.equal(formatBytes(bytes), text)
})
