import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { deflateRawSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { ZipWriterConstructorOptions } from '@zip.js/zip.js'
import { unpackedFile, zipFiles } from '../../../tests/support/reading.ts'
import { unpackFiles } from './unpacked-files.ts'

/** Text that stays long when compressed, so that it can be cut in the middle. */
const text = Buffer.from(Array.from({ length: 9_000 }, (_, line) => `${line} ${Math.sin(line)}\n`).join(''))
/** The last one ends with the header of `a.json` in an archive without extra fields. */
const chunkSizes = [1_000_000, 1_000, 36]

describe('a compressed file', () => {
  const packed: Readonly<Record<string, Buffer>> = {
    'not at all': text,
    'with gzip': gzipSync(text),
    'with gzip in two members': Buffer.concat([gzipSync(text.subarray(0, 999)), gzipSync(text.subarray(999))]),
    'with gzip, padded': Buffer.concat([gzipSync(text), Buffer.alloc(20)]),
    'with gzip that has a name in its header': withName(gzipSync(text)),
    'with zstd': zstdCompressSync(text),
    'with zstd in two frames': Buffer.concat([
      zstdCompressSync(text.subarray(0, 9)),
      zstdCompressSync(text.subarray(9)),
    ]),
    'with gzip in zstd': zstdCompressSync(gzipSync(text)),
    'with gzip twice': gzipSync(gzipSync(text)),
  }
  for (const [how, bytes] of Object.entries(packed))
    it(`is decompressed, for any chunking, when compressed ${how}`, async () => {
      for (const chunk of chunkSizes) assert.deepEqual(await unpacked(bytes, chunk), ['file: all'])
    })

  it('that is truncated is decompressed up to its end', async () => {
    for (const bytes of [gzipSync(text), zstdCompressSync(text)])
      for (const chunk of chunkSizes) {
        const begun = bytes.subarray(0, Math.floor(bytes.length * 0.8))
        assert.deepEqual(await unpacked(begun, chunk), ['file: most, truncated_record'])
      }
    assert.deepEqual(await unpacked(gzipSync(text).subarray(0, -4)), ['file: all, truncated_record'])
  })

  it('that is damaged is decompressed up to the damage', async () => {
    for (const bytes of [gzipSync(text), zstdCompressSync(text)]) {
      bytes.fill(0xaa, Math.floor(bytes.length * 0.8), Math.floor(bytes.length * 0.8) + 50)
      assert.deepEqual(await unpacked(bytes), ['file: most, compressed_input'])
    }
  })

  it('with a wrong checksum, or with other data after it, is decompressed completely', async () => {
    const otherSum = gzipSync(text)
    otherSum[otherSum.length - 6]! ^= 1
    const more = [gzipSync(text), zstdCompressSync(text)].map(bytes => Buffer.concat([bytes, Buffer.from('more')]))
    for (const bytes of [otherSum, ...more]) assert.deepEqual(await unpacked(bytes), ['file: all, compressed_input'])
  })

  it('is not decompressed if it has too many layers, or a format that Node cannot decompress', async () => {
    let bytes = text.subarray(0, 100)
    for (let times = 0; times < 7; times++) bytes = gzipSync(bytes)
    const bzip2 = Buffer.from('BZh91AY&SY', 'latin1')
    for (const packed of [bytes, bzip2]) assert.deepEqual(await unpacked(packed), ['file: 0 bytes, compressed_input'])
  })
})

describe('a zip archive', () => {
  const two = { 'a.json': text, 'folder/b.json.gz': gzipSync(text) }
  const whole = ['file!a.json: all', 'file!folder/b.json.gz: all']
  const kinds: Readonly<Record<string, ZipWriterConstructorOptions>> = {
    'as most programs write it': { dataDescriptor: false },
    'with lengths after the files': { dataDescriptor: true },
    'with lengths after the files, without a signature': { dataDescriptor: true, dataDescriptorSignature: false },
    'of zip64': { zip64: true, dataDescriptor: false },
    'of zip64 with lengths after the files': { zip64: true, dataDescriptor: true },
    'without extra fields': { extendedTimestamp: false, dataDescriptor: false },
    'without compression': { level: 0, dataDescriptor: false },
  }
  for (const [how, options] of Object.entries(kinds))
    it(`${how} is unpacked into its files in order, for any chunking`, async () => {
      const bytes = await zipFiles(two, options)
      for (const chunk of chunkSizes) assert.deepEqual(await unpacked(bytes, chunk), whole)
    })

  it('within an archive, compressed or not, is unpacked too', async () => {
    const inner = await zipFiles(two)
    const bytes = gzipSync(await zipFiles({ 'inner.zip': inner, 'packed.zip.gz': gzipSync(inner) }))
    assert.deepEqual(await unpacked(bytes), [
      'file!inner.zip!a.json: all',
      'file!inner.zip!folder/b.json.gz: all',
      'file!packed.zip.gz!a.json: all',
      'file!packed.zip.gz!folder/b.json.gz: all',
    ])
  })

  it('is unpacked without the files that macOS adds, and without folders', async () => {
    const bytes = await zipFiles({ '__MACOSX/._a.json': text, '.DS_Store': text, 'folder/': Buffer.alloc(0), ...two })
    assert.deepEqual(await unpacked(bytes), whole)
  })

  it('is read up to a maximum number of files, including those of nested archives', async () => {
    const inner = await zipFiles({ 'a.json': text, 'b.json': text, 'c.json': text })
    const bytes = await zipFiles({ '1.zip': inner, '2.zip': inner })
    const all = ['1.zip', '2.zip'].flatMap(zip => ['a', 'b', 'c'].map(name => `file!${zip}!${name}.json: all`))
    assert.deepEqual(await unpacked(bytes, 1_000, 6), all)
    assert.deepEqual(await unpacked(bytes, 1_000, 4), [...all.slice(0, 4), 'file: 0 bytes, compressed_input'])
  })

  it('is read up to a maximum total length of file names, since compression makes long names cheap', async () => {
    const inner = zipOfNames(Array.from({ length: 700 }, (_, index) => `${index}${'n'.repeat(60_000)}`))
    const files = await unpacked(await zipFiles({ 'inner.zip': inner }), 1_000_000)
    assert.equal(files.at(-1), 'file: 0 bytes, compressed_input')
    assert.ok(files.join('').length <= 33 * 1024 * 1024)
  })

  it('that is empty has no files', async () => {
    assert.deepEqual(await unpacked(await zipFiles({}), 1_000), [])
  })

  it('with a password gives one damage report for its first file, and one for the files that cannot be found', async () => {
    for (const zipCrypto of [true, false])
      assert.deepEqual(await unpacked(await zipFiles(two, { password: 'secret', zipCrypto })), [
        'file!a.json: 0 bytes, compressed_input',
        'file: 0 bytes, compressed_input',
      ])
  })

  it('that is truncated is unpacked up to its end, with one damage report', async () => {
    const bytes = await zipFiles(two, { dataDescriptor: false })
    const begun = await unpacked(bytes.subarray(0, bytes.length * 0.75))
    assert.equal(begun[0], whole[0])
    assert.match(begun[1]!, /^file!folder\/b\.json\.gz: .*, truncated_record$/)
    assert.equal(begun.length, 2)
    const betweenFiles = bytes.subarray(0, bytes.lastIndexOf('PK\x03\x04'))
    assert.equal((await unpacked(betweenFiles)).at(-1), 'file: 0 bytes, truncated_record')
  })

  it('with a file that was truncated before it was added is unpacked beyond that file', async () => {
    const bytes = await zipFiles({ ...two, 'a.json': gzipSync(text).subarray(0, -100) })
    assert.deepEqual(await unpacked(bytes), ['file!a.json: most, truncated_record', whole[1]])
  })

  it('with a damaged file is unpacked beyond that file', async () => {
    const bytes = await zipFiles(two, { dataDescriptor: false })
    bytes.fill(0xaa, 10_000, 10_050)
    const [damaged, next] = await unpacked(bytes)
    assert.match(damaged!, /^file!a\.json: .*, compressed_input$/)
    assert.equal(next, whole[1])
  })
})

/** Empty stored files, and the end of an archive without a central directory. */
function zipOfNames(names: readonly string[]): Buffer {
  const files = names.map(name => {
    const header = Buffer.alloc(30)
    header.write('PK\x03\x04', 'latin1')
    header.writeUInt16LE(name.length, 26)
    return Buffer.concat([header, Buffer.from(name)])
  })
  return Buffer.concat([...files, Buffer.from('PK\x05\x06', 'latin1')])
}

/** The unpacked files, each with how much of the text it is, and its damage. */
async function unpacked(bytes: Buffer, chunk = 1_000, countMax?: number): Promise<string[]> {
  const found: string[] = []
  for await (const file of unpackFiles('file', unpackedFile(bytes, { cuts: chunk }).bytes, countMax)) {
    const read = Buffer.concat(await Array.fromAsync(file.bytes))
    const amount = read.equals(text) ? 'all' : read.length > text.length / 2 ? 'most' : `${read.length} bytes`
    const reason = file.damage()?.reason
    found.push(`${file.object}: ${amount}${reason === undefined ? '' : `, ${reason}`}`)
  }
  return found
}

/** With all the optional fields of a gzip header. */
function withName(gzip: Buffer): Buffer {
  const header = Buffer.from(gzip.subarray(0, 10))
  header[3] = 0x1e
  const fields = Buffer.from('\x03\x00xyzname\x00comment\x00\x00\x00', 'latin1')
  return Buffer.concat([header, fields, deflateRawSync(text), gzip.subarray(-8)])
}
