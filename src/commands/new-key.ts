// `pennon new-key`: creates another personal API key, for another person or program, or to replace a lost key. Access to
// the state is the only permission that it requires.

import { randomBytes, randomUUID } from 'node:crypto'
import { systemClock } from '#compose/instance/machine.ts'
import { openExistingManagementStore } from '#compose/stores/existing-state.ts'
import type { Config } from '#config.ts'
import { PortError } from '#ports/port-error.ts'
import { createPersonalKey } from '#services/manage/manage-keys.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { readConfigOrRefuse, refuse } from './refuse.ts'

/** The longest label that the private API accepts. */
const labelLengthMax = 200

export async function createAndPrintKey({ label }: { label: string }): Promise<void> {
  if (label.trim() === '' || label.length > labelLengthMax)
    refuse(`A label must have 1 to ${labelLengthMax} characters, not only spaces.`)
  const config = readConfigOrRefuse()
  process.umask(0o077)
  const opened = await openExistingManagementStore(config, createSilentLogger())
  if (!opened.ok) refuse(opened.error)
  const management = opened.value
  try {
    const deps = { management, newUuid: randomUUID, randomBytes }
    const change = { by: { id: null, label: 'pennon new-key' }, atMs: systemClock.nowMs() }
    const created = await createPersonalKey(deps, { label, scopes: ['*'], scopedProjectIds: [] }, change)
    if (!created.ok) throw new Error(`creating a key with all scopes was refused: ${created.error.kind}`)
    process.stdout.write(describeNewKey(created.value.secret, label, config))
  } catch (cause) {
    if (!(cause instanceof PortError)) throw cause
    refuse(`The key could not be stored: ${cause.message}`)
  } finally {
    await management.close()
  }
}

function describeNewKey(secret: string, label: string, config: Config): string {
  const host = ['0.0.0.0', '::'].includes(config.host) ? '127.0.0.1' : config.host
  // The default port is not shown, since the instance may have been started with another port.
  const port = config.adminPort ?? (process.env.PORT ? config.port : null)
  const api = port === null ? '$PENNON' : `http://${host}:${port}`
  return [
    '',
    `  Personal API key  ${secret}   (secret: shown only now)`,
    `  Label             ${label}`,
    '',
    '  It has all permissions in every project and works immediately. Use it for the private API:',
    '',
    `     curl "${api}/api/projects/@current/feature_flags/" -H 'Authorization: Bearer ${secret}'`,
    ...(port === null ? ['', '  where $PENNON is the URL that the instance printed at start.'] : []),
    '',
    '  Every other key still works, a lost one too: /api/personal_api_keys/ lists them, and DELETE /api/personal_api_keys/<id>/',
    '  deletes a key.',
    '',
    '',
  ].join('\n')
}
