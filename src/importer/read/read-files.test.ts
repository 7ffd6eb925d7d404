import assert from 'node:assert/strict'
import { existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { runs } from '../../../tests/support/nightly.ts'
import { outcomeOf, zipFiles } from '../../../tests/support/reading.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { findRawFiles } from './raw-files.ts'
import { createRecordReader, type ReadOptions } from './read-files.ts'

/** For files that need no unpacking to disk. */
const noSpool: ReadOptions = { spool: { folder: '/dev/null/none' } }
const parquet = Buffer.from(parquetWriteBuffer({ columnData: [{ name: 'n', data: [1, 2], type: 'INT32' }] }))
const lines = '{"n":1,"t":"é"}\r\n\n{"n":2}\nbroken\n{"n":3}'

describe('the records of a file', () => {
  it('are the same for any compression and any name', async t => {
    const whole = await read(t, { 'a.json': lines })
    const all = [{ n: 1, t: 'é' }, 'blank_line', { n: 2 }, 'json_syntax', { n: 3 }]
    assert.deepEqual(await outcomes(t, { 'a.json': lines }), all)
    for (const bytes of [gzipSync(lines), zstdCompressSync(lines), zstdCompressSync(gzipSync(lines))])
      assert.deepEqual(await read(t, { 'a.json': bytes }), whole)
  })

  it('are the same for any chunking', async t => {
    const rows = fc.array(fc.oneof(fc.json(), fc.constantFrom('', '{"ß":"€😀"}', '{"a":')), { maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(rows, fc.boolean(), fc.integer({ min: 1, max: 40 }), async (texts, isPacked, chunkBytes) => {
        const text = texts.join('\n')
        const bytes = isPacked ? gzipSync(text) : Buffer.from(text)
        assert.deepEqual(await read(t, { 'a.json': bytes }, { chunkBytes }), await read(t, { 'a.json': bytes }))
      }),
      { numRuns: runs(20, 50) },
    )
  })

  it('do not block signals and timers, however many records are read at once', async t => {
    const path = join(tempDir(t), 'a.json')
    writeFileSync(path, '\n'.repeat(200_000))
    let [count, countAtTurn] = [0, 0]
    // In one chunk, so that nothing is awaited after reading it.
    for await (const _ of createRecordReader({ ...noSpool, chunkBytes: 200_000 })({ path, object: 'a.json' }))
      if (++count === 1) setTimeout(() => (countAtTurn = count))
    assert.equal(count, 200_000)
    assert.ok(countAtTurn > 0 && countAtTurn < count, `${countAtTurn}`)
  })

  it('of an archive have the name of their file in the archive, and its table', async t => {
    const found = await read(t, {
      'heap.zip': await zipFiles({ 'out/pageviews.json': '{"n":1}\n', 'users.csv': 'n\n2\n' }),
    })
    assert.deepEqual(found, [
      { object: 'heap.zip!out/pageviews.json', line: 1, table: 'pageviews', outcome: { n: 1 } },
      { object: 'heap.zip!users.csv', line: 2, table: 'users', outcome: { n: '2' } },
    ])
  })

  it('of Parquet in an archive are extracted to the given folder, which is empty afterwards', async t => {
    const spool = { folder: join(tempDir(t), 'spill') }
    const rows = [{ n: 1 }, { n: 2 }]
    assert.deepEqual(await outcomes(t, { 'events.parquet': parquet }, { spool }), rows)
    assert.ok(!existsSync(spool.folder))
    for (let times = 0; times < 2; times++) {
      assert.deepEqual(await outcomes(t, { 'events.parquet': gzipSync(parquet) }, { spool }), rows)
      assert.deepEqual(await readdir(spool.folder), [])
      writeFileSync(join(spool.folder, 'unpacked'), 'left by a crash')
    }
  })

  it('of Parquet are refused if they decompress to more than the limit', async t => {
    const spool = { folder: tempDir(t), bytesMax: parquet.length }
    const unpack = (bytes: Buffer) => outcomes(t, { 'a.parquet.gz': gzipSync(bytes), 'b.json': '{}' }, { spool })
    assert.deepEqual(await unpack(parquet), [{ n: 1 }, { n: 2 }, {}])
    assert.deepEqual(await unpack(Buffer.concat([parquet, Buffer.alloc(1)])), ['compressed_input', {}])
    assert.deepEqual(await readdir(spool.folder), [])
  })

  it('leave no file open when reading stops early', async t => {
    const folder = tempDir(t)
    const path = join(folder, 'a.json.gz')
    writeFileSync(path, gzipSync(lines.repeat(10_000)))
    for (let times = 0; times < 20; times++)
      for await (const _ of createRecordReader(noSpool)({ path, object: path })) break
    assert.ok((await readdir('/proc/self/fd').catch(() => [])).length < 100)
  })

  it('are read as CSV if the configuration or the file name says so', async t => {
    for (const name of ['a.csv.gz', 'export'])
      assert.deepEqual(await outcomes(t, { [name]: 'a,b\n1,2\n' }), [{ a: '1', b: '2' }])
    assert.deepEqual(await outcomes(t, { 'a.ndjson': 'a,b\n' }), ['json_syntax'])
  })

  it('are none if the file is empty', async t => {
    assert.deepEqual(await read(t, { 'a.json': '', 'a.csv': '', a: '' }), [])
  })
})

describe('the files of an import', () => {
  it('are the named files and all files in named folders, sorted by name and without hidden ones', async t => {
    const folder = tempDir(t)
    const names = ['b/2.json', 'b/10.json', 'a.json', '.hidden', 'b/.DS_Store', '.git/x', '__MACOSX/y', 'c/d/e.csv']
    for (const name of names) {
      mkdirSync(join(folder, name, '..'), { recursive: true })
      writeFileSync(join(folder, name), '')
    }
    const found = await findRawFiles([folder, join(folder, '.hidden'), join(folder, 'a.json')])
    const paths = found.map(({ path }) => relative(folder, path))
    assert.deepEqual(paths, ['a.json', 'b/10.json', 'b/2.json', 'c/d/e.csv', '.hidden'])
    await assert.rejects(findRawFiles([join(folder, 'gone')]), { code: 'ENOENT' })
  })

  it('are found once in folders that link to each other, and broken links are reported', async t => {
    const folder = tempDir(t)
    for (const name of ['a', 'b', 'c']) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'x.json'), '')
      for (const other of ['a', 'b', 'c']) symlinkSync(join('..', other), join(folder, name, `to-${other}`))
    }
    symlinkSync('.', join(folder, 'd'))
    symlinkSync('/nowhere/at/all', join(folder, 'gone'))
    symlinkSync('round', join(folder, 'round'))
    const dead: string[] = []
    const found = await findRawFiles([folder], { onDeadLink: link => dead.push(relative(folder, link)) })
    const real = found.map(({ path }) => relative(realpathSync(folder), realpathSync(path)))
    assert.deepEqual(real.toSorted(), ['a/x.json', 'b/x.json', 'c/x.json'])
    assert.deepEqual(dead, ['gone', 'round'])
    await assert.rejects(findRawFiles([join(folder, 'gone')]), { code: 'ENOENT' })
  })
})

type Files = Readonly<Record<string, Buffer | string>>

async function outcomes(t: TestContext, files: Files, options?: Partial<ReadOptions>) {
  return (await read(t, files, options)).map(({ outcome }) => outcome)
}

async function read(t: TestContext, files: Files, options: Partial<ReadOptions> = {}) {
  const folder = tempDir(t)
  const found: { object: string; line: number; table: string | null; outcome: unknown }[] = []
  for (const [name, bytes] of Object.entries(files)) {
    const path = join(folder, name)
    writeFileSync(path, bytes)
    const reader = createRecordReader({ ...noSpool, ...options })
    for await (const { raw, parsed, table } of reader({ path, object: name }))
      found.push({ object: raw.object, line: raw.line, table, outcome: outcomeOf(parsed) })
  }
  return found
}
