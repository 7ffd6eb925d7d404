// `pennon sign-in-link`: makes a link with which a person signs in once, the first admin or someone who cannot sign in any
// more. Access to the state is the only permission that it requires.

import { randomBytes, randomUUID } from 'node:crypto'
import { systemClock } from '#compose/instance/machine.ts'
import { openExistingManagementStore } from '#compose/stores/existing-state.ts'
import type { Config } from '#config.ts'
import type { Change } from '#core/author.ts'
import type { Role } from '#core/users/user.ts'
import { normalizeEmail } from '#core/users/user.ts'
import { PortError } from '#ports/port-error.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { buildLinkUrl, createLinkForUser, inviteUser, updateUser } from '#services/manage/manage-users.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { readConfigOrRefuse, refuse } from './refuse.ts'

export interface SignInLinkOptions {
  readonly email?: string
  readonly role?: Role
  readonly name?: string
}

export async function createAndPrintLink(options: SignInLinkOptions): Promise<void> {
  const config = readConfigOrRefuse()
  // The public URL leads to the port for SDKs.
  const base = (config.adminPort === null ? config.publicUrl : null) ?? formatOwnAddress(config)
  if (buildLinkUrl(base, '') === null)
    refuse(
      `People can sign in only at the root of a host, and PENNON_PUBLIC_URL is ${base}. Give Pennon a host name or a port of its own.`,
    )
  if (options.email !== undefined && normalizeEmail(options.email) === null)
    refuse(`${JSON.stringify(options.email)} is not an e-mail address.`)
  process.umask(0o077)
  const opened = await openExistingManagementStore(config, createSilentLogger())
  if (!opened.ok) refuse(opened.error)
  const management = opened.value
  try {
    const token = await createToken(management, options)
    process.stdout.write(describeLink(buildLinkUrl(base, token)!, config))
  } catch (cause) {
    if (!(cause instanceof PortError)) throw cause
    refuse(`The link could not be stored: ${cause.message}`)
  } finally {
    await management.close()
  }
}

async function createToken(management: ManagementStore, { email, role, name }: SignInLinkOptions): Promise<string> {
  const check = { forget: () => undefined }
  const deps = { management, newUuid: randomUUID, randomBytes, sessionCheck: check, keyCheck: check }
  const change: Change = { by: { id: null, label: 'pennon sign-in-link' }, atMs: systemClock.nowMs() }
  const user = email === undefined ? null : await management.findUserByEmail(normalizeEmail(email)!)
  if (user === null) {
    const invited = { email: email ?? null, name: name ?? '', role: role ?? 'admin', seesPersons: true } as const
    const made = await inviteUser(deps, { ...invited, purpose: 'welcome' }, change)
    if (made.ok) return made.value.token
    return refuse(`A link for this address was refused: ${made.error}.`)
  }
  if (role !== undefined && role !== user.role) {
    const updated = await updateUser(deps, user.id, { role }, change)
    if (!updated.ok) refuse(`${user.email} stays ${user.role}: this is the last admin.`)
  }
  const made = await createLinkForUser(deps, user, 'welcome', change)
  return made.ok ? made.value.token : refuse(`${user.email} is disabled. An admin can enable them.`)
}

/** A start that was given another port by its own settings prints it. */
function formatOwnAddress(config: Config): string {
  const host = ['0.0.0.0', '::'].includes(config.host) ? '127.0.0.1' : config.host
  return `http://${host.includes(':') ? `[${host}]` : host}:${config.adminPort ?? config.port}`
}

function describeLink(link: string, config: Config): string {
  const isGuessed = config.publicUrl === null && !process.env.PORT && config.adminPort === null
  return [
    '',
    `  Sign in  ${link}`,
    '',
    '  The link works once, within 24 hours. Whoever has it can sign in with it.',
    ...(isGuessed ? [`  If the instance printed another address at its start, replace ${new URL(link).origin}.`] : []),
    '',
    '',
  ].join('\n')
}
