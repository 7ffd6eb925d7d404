import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { linkSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { ImportCommands } from '../support/import-command.ts'
import { mustSucceed, refusalOf } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

it('a broken symbolic link in an export folder is left out of the plan and named in the output', async t => {
  const folder = tempDir(t)
  const commands = new ImportCommands(tempDir(t))
  const link = join(folder, 'gone.jsonl')
  symlinkSync('/nowhere/at/all', link)
  const refused = refusalOf(await commands.plan([folder]))
  assert.match(refused, /^pennon: there is no file in [^\n]*Skipped, a link to a missing file: [^\n]*\n$/)
  symlinkSync(
    commands.file('day.jsonl', '{"id":"r","event":"Paid","user":"u","at":"2024-05-01T12:00:00Z"}\n'),
    `${link}.2`,
  )
  const planned = mustSucceed(await commands.plan([folder]))
  assert.ok(`${planned.stdout}${planned.stderr}`.includes(`a link to a missing file: ${link}.`))
})

it('a pipe is refused as an export file, since it can be read only once', async t => {
  const folder = tempDir(t)
  const commands = new ImportCommands(tempDir(t))
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const stderr = refusalOf(await commands.plan([pipe]))
  assert.match(stderr, /^pennon: the files cannot be read: .*pipe is neither a file nor a folder: put what comes out/)
})

it('a file with several names, by symbolic or hard links, is planned once, and the additional names are listed', async t => {
  const folder = tempDir(t)
  const commands = new ImportCommands(tempDir(t))
  const day = commands.file('day.jsonl', '{"id":"r","event":"Paid","user":"u","at":"2024-05-01T12:00:00Z"}\n')
  const [first, second, third] = ['a', 'b', 'c'].map(name => join(folder, `${name}.jsonl`)) as [string, string, string]
  linkSync(day, first)
  symlinkSync(first, second)
  symlinkSync(second, third)
  // Listing the same name twice does not count as another name.
  const planned = mustSucceed(await commands.plan([folder, first, day]))
  assert.match(planned.stdout, /^1 file of generic, /)
  const others = [second, third, day].map(name => `${name} (${first})`).join(', ')
  assert.ok(planned.stdout.includes(`Skipped, 3 other names of included files: ${others}.\n`), planned.stdout)
  const ran = await commands.call('run')
  assert.match(
    ran.stdout,
    /^1 record: 1 produces events, 0 are skipped, 0 rejected, 0 collapsed \(repeated records\)\.$/m,
  )
})
