import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { blockBytes, decodeTarHeader, encodeTarHeader, UnfitNameError } from './tar-header.ts'
import { BackupDamagedError, unpackBackup } from './unpack-backup.ts'
import { createBackupWriter } from './write-backup.ts'

const options = { nowMs: () => Date.UTC(2026, 10, 22), checkStop: () => undefined }
const longName = `events/store/store/abc/${'0'.repeat(36)}/1-202611_1_1000_12/${'p'.repeat(60)}.cmrk4`

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A backup of three files, and an empty folder to unpack it in. */
async function aBackup(t: TestContext) {
  const folder = folderOf(t)
  const [path, target, large] = [join(folder, 'b.tar'), join(folder, 'out'), join(folder, 'large')]
  writeFileSync(large, Buffer.alloc(2_500_000, 'abc'))
  mkdirSync(target)
  const writer = await createBackupWriter(path, options)
  await writer.addContent('backup.json', '{}\n')
  await writer.addFile('state.db', large)
  await writer.addContent(longName, '')
  await writer.finish()
  await writer.close()
  return { folder, path, target }
}

describe('a backup file', () => {
  it('unpacks to the content that was put into it, and is readable only by its owner', async t => {
    const { path, target } = await aBackup(t)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.deepEqual(await unpackBackup(path, target), ['backup.json', 'state.db', longName])
    assert.deepEqual(readFileSync(join(target, 'state.db')), Buffer.alloc(2_500_000, 'abc'))
    assert.equal(statSync(join(target, 'state.db')).mode & 0o777, 0o600)
    assert.equal(readFileSync(join(target, longName), 'utf8'), '')
  })

  it('is a tar that the system’s own tools can read, with checksums that they verify', async t => {
    const { path, target } = await aBackup(t)
    execFileSync('tar', ['xf', path], { cwd: target })
    const told = execFileSync('sha256sum', ['-c', 'SHA256SUMS'], { cwd: target, encoding: 'utf8' })
    assert.equal(told, ['backup.json', 'state.db', longName].map(name => `${name}: OK\n`).join(''))
  })

  it('is refused if any of its bytes has changed, with the name of the damaged file inside it', async t => {
    const { folder, path } = await aBackup(t)
    const whole = readFileSync(path)
    const stateAt = 2 * blockBytes
    for (const [at, complaint] of [
      [stateAt + blockBytes + 1_200_000, /^state\.db in it is damaged$/],
      [blockBytes + 1, /^backup\.json in it is damaged$/],
      [stateAt + 20, /^it is damaged after backup\.json$/],
      [20, /^it is damaged at its beginning$/],
      [whole.indexOf('SHA256SUMS') + blockBytes + 3, /damaged/],
      [whole.indexOf('SHA256SUMS') + blockBytes + 70, /damaged|missing|no checksum/],
    ] as const) {
      const broken = Buffer.from(whole)
      broken[at]! ^= 1
      await assertRefused(folder, broken, complaint)
    }
  })

  it('is refused if it was truncated at any point', async t => {
    const { folder, path } = await aBackup(t)
    const whole = readFileSync(path)
    for (const length of [0, 100, blockBytes, 1_000_000, whole.length - 2 * blockBytes])
      await assertRefused(folder, whole.subarray(0, length), /is incomplete: it ends/)
    const atSums = whole.indexOf('SHA256SUMS')
    const withoutSums = Buffer.concat([whole.subarray(0, atSums), Buffer.alloc(2 * blockBytes)])
    await assertRefused(folder, withoutSums, /it has no SHA256SUMS/)
  })

  it('is refused if the name of a file inside it leads out of the target folder or is not allowed', async t => {
    const folder = folderOf(t)
    for (const name of [
      '../state.db',
      '/etc/passwd',
      'log/../../x',
      'log/./x',
      '..',
      'log//x',
      'log/',
      'a b',
      'a\\b',
      'é',
    ])
      await assertRefused(folder, Buffer.concat([headerOf(name), Buffer.alloc(1024)]), /contains/)
  })

  it('is refused if it contains links, folders or devices', async t => {
    const folder = folderOf(t)
    for (const type of ['1', '2', '3', '5', 'L', 'x'])
      await assertRefused(folder, Buffer.concat([headerOf('log', type), Buffer.alloc(1024)]), /damaged/)
  })

  it('can be unpacked with every file name that its writer accepts', async t => {
    const folder = folderOf(t)
    const [path, target] = [join(folder, 'b.tar'), join(folder, 'out')]
    mkdirSync(target)
    const names = [
      '%24group_0.size.bin',
      'flags%2Ekeys.dict.cmrk2',
      'a/.b',
      '~=@+,;!#(){}[]',
      `${'d'.repeat(150)}/${'f'.repeat(100)}`,
    ]
    const writer = await createBackupWriter(path, options)
    for (const name of names) await writer.addContent(name, name)
    await assert.rejects(writer.addContent('../x', ''), UnfitNameError)
    await writer.finish()
    await writer.close()
    assert.deepEqual(await unpackBackup(path, target), names)
  })
})

describe('the header of a file in a tar', () => {
  it('can hold names of up to 255 characters and sizes beyond 8 GiB', () => {
    for (const header of [
      { name: 'a', size: 0 },
      { name: longName, size: 8 ** 11 - 1 },
      { name: `${'d'.repeat(150)}/${'f'.repeat(100)}`, size: 8 ** 11 },
      { name: 'state.db', size: 3 * 2 ** 40 },
    ])
      assert.deepEqual(decodeTarHeader(encodeTarHeader(header, 0)), header)
    for (const name of ['x'.repeat(101), 'two words', '', `${'d'.repeat(156)}/f`])
      assert.throws(() => encodeTarHeader({ name, size: 0 }, 0), UnfitNameError)
  })
})

/** A header that is whole, with a name and a type that ours never has. */
function headerOf(name: string, type = '0'): Buffer {
  const header = encodeTarHeader({ name: 'x', size: 0 }, 0)
  header.write(name.padEnd(2, '\0'), 0, 'latin1')
  header.write(type, 156, 'latin1')
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}

async function assertRefused(folder: string, bytes: Buffer, complaint: RegExp): Promise<void> {
  const [path, target] = [join(folder, 'broken.tar'), join(folder, 'broken')]
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target)
  writeFileSync(path, bytes)
  await assert.rejects(unpackBackup(path, target), error => {
    assert.ok(error instanceof BackupDamagedError, String(error))
    assert.match(error.message, complaint)
    return true
  })
  assert.ok(!readdirSync(folder).includes('state.db'))
}
