import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Command } from 'commander'
import { addEventsCommand } from '../events/events-command.ts'
import { addFlagsCommand } from '../flags/flags-command.ts'
import { addImportCommand } from '../import/import-command.ts'
import { describePortMismatch, resolveInstanceAddress } from './instance-address.ts'

const config = { instance: null, host: '0.0.0.0', port: 8000, adminPort: null }

const addresses: [given: string | undefined, address: string | null][] = [
  [undefined, 'http://127.0.0.1:8000'],
  ['https://pennon.example', 'https://pennon.example'],
  ['https://pennon.example/below/', 'https://pennon.example/below'],
  ['pennon.example', 'https://pennon.example'],
  ['pennon.example:8443', 'https://pennon.example:8443'],
  ['localhost:9000', 'http://localhost:9000'],
  ['127.0.0.1', 'http://127.0.0.1'],
  ['[::1]:9000/', 'http://[::1]:9000'],
  ['localhost.evil.example', 'https://localhost.evil.example'],
  ['ftp://pennon.example', null],
  ['https://pennon.example/?a=1', null],
  ['', null],
  ['not an address', null],
]

for (const [given, address] of addresses)
  it(`the address of --host ${JSON.stringify(given)} is ${address ?? 'refused with an example'}`, () => {
    assert.deepEqual(
      resolveInstanceAddress(given, config),
      address === null
        ? { ok: false, error: `--host must be a URL such as https://pennon.example, not ${given}` }
        : { ok: true, value: address },
    )
  })

it('the instance of the current configuration is reached on its admin port, if it has one', () => {
  assert.deepEqual(resolveInstanceAddress(undefined, { instance: null, host: '::', port: 1, adminPort: 2 }), {
    ok: true,
    value: 'http://127.0.0.1:2',
  })
  assert.deepEqual(resolveInstanceAddress(undefined, { instance: null, host: 'fd00::1', port: 1, adminPort: null }), {
    ok: true,
    value: 'http://[fd00::1]:1',
  })
})

it('the address of an instance is the value of PENNON unless --host is given', () => {
  const here = { ...config, instance: 'https://flags.example/' }
  assert.deepEqual(resolveInstanceAddress(undefined, here), { ok: true, value: 'https://flags.example' })
  assert.deepEqual(resolveInstanceAddress('localhost:9000', here), { ok: true, value: 'http://localhost:9000' })
  assert.deepEqual(resolveInstanceAddress(undefined, { ...config, instance: 'ftp://x' }), {
    ok: false,
    error: 'PENNON must be a URL such as https://pennon.example, not ftp://x',
  })
})

it('a notice says which instance is asked if PENNON and PORT name different ones', () => {
  const note = (instance: string | null, port: string | undefined, given?: string) =>
    describePortMismatch(given, port, { instance, host: '127.0.0.1', port: Number(port ?? 8000), adminPort: null })
  assert.match(
    note('http://127.0.0.1:8000', '9999')!,
    /^using http:\/\/127\.0\.0\.1:8000 from PENNON, .*--host http:\/\/127\.0\.0\.1:9999$/,
  )
  assert.match(note('localhost:8000', '9999')!, /^using localhost:8000/)
  assert.equal(note('http://127.0.0.1:9999', '9999'), null)
  assert.equal(note('http://127.0.0.1:9000', undefined), null)
  assert.equal(note('https://pennon.example', '9999'), null)
  assert.equal(note('http://127.0.0.1:8000', '9999', 'http://127.0.0.1:1'), null)
  assert.equal(note(null, '9999'), null)
})

it('--host is an option of every command, except those for a folder that already names its instance', () => {
  const program = new Command()
  addEventsCommand(program)
  addFlagsCommand(program)
  addImportCommand(program)
  const without = program.commands
    .flatMap(({ commands }) => commands)
    .filter(command => !command.options.some(({ long }) => long === '--host'))
  assert.ok(program.commands.length === 3 && without.length > 0)
  // `convert` works without an instance.
  for (const command of without)
    assert.ok(command.name() === 'convert' || command.registeredArguments[0]?.name() === 'folder', command.name())
})
