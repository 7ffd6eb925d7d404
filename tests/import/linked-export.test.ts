import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { ImportCommands } from '../support/import-command.ts'
import { tempDir } from '../support/temp-dir.ts'

it('a link to nothing in the folder of an export is left out of the plan and named', async t => {
  const folder = tempDir(t)
  const commands = new ImportCommands(tempDir(t))
  const link = join(folder, 'gone.jsonl')
  symlinkSync('/nowhere/at/all', link)
  const refused = await commands.plan([folder])
  assert.equal(refused.exitCode, 2)
  assert.match(
    refused.stderr,
    /^pennon: there is no file in [^\n]*Left out, a link to a file that is not there: [^\n]*\n$/,
  )
  symlinkSync(
    commands.file('day.jsonl', '{"id":"r","event":"Paid","user":"u","at":"2024-05-01T12:00:00Z"}\n'),
    `${link}.2`,
  )
  const planned = await commands.plan([folder])
  assert.equal(planned.exitCode, 0, planned.stderr)
  assert.ok(`${planned.stdout}${planned.stderr}`.includes(`a link to a file that is not there: ${link}.`))
})
