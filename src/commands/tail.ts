// `pennon tail`: a line for each event as it comes in, from the live view of a running instance.

import { readConfig } from '../config.ts'
import { refuse } from './refuse.ts'

export interface TailOptions {
  readonly url?: string
  readonly project: string
  readonly event: readonly string[]
  readonly distinctId: readonly string[]
  readonly historical?: boolean
  readonly json?: boolean
}

export async function tail(options: TailOptions): Promise<void> {
  const read = readConfig(process.env)
  if (!read.ok) refuse(read.error)
  const { host, port, adminPort, personalKey } = read.value
  if (personalKey === null) refuse('Set PENNON_PERSONAL_KEY to a personal API key with the scope query:read.')
  const from = options.url ?? `http://${['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host}:${adminPort ?? port}`
  const query = new URLSearchParams()
  for (const name of options.event) query.append('event', name)
  for (const id of options.distinctId) query.append('distinct_id', id)
  if (options.historical) query.append('historical', 'true')
  const path = `/api/projects/${encodeURIComponent(options.project)}/events/live/?${query}`
  // Whoever reads the lines has seen enough: `| head`.
  process.stdout.once('error', () => process.exit(0))
  let reason = 'the connection was cut'
  try {
    const response = await fetch(from.replace(/\/+$/, '') + path, {
      headers: { authorization: `Bearer ${personalKey}` },
    })
    if (!response.ok || response.body === null) refuse(`${from} answered ${response.status}: ${await response.text()}`)
    for await (const { kind, data } of messagesOf(response.body)) {
      if (kind === 'end') reason = String(data.reason)
      const line = options.json ? JSON.stringify({ type: kind, ...data }) : lineOf(kind, data)
      process.stdout.write(`${printable(line)}\n`)
    }
  } catch (cause) {
    const { message, cause: inner } = cause as Error
    reason = inner instanceof Error ? inner.message || (inner as NodeJS.ErrnoException).code! : message
  }
  refuse(`The live view of ${from} ended: ${reason}`)
}

type Data = Readonly<Record<string, unknown>>

async function* messagesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<{ kind: string; data: Data }> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const messages = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = messages.pop()!
    for (const message of messages) {
      const [, kind] = /^event: (.*)$/m.exec(message) ?? []
      const [, data] = /^data: (.*)$/m.exec(message) ?? []
      if (kind !== undefined && data !== undefined) yield { kind, data: JSON.parse(data) as Data }
    }
  }
}

function lineOf(kind: string, data: Data): string {
  switch (kind) {
    case 'event':
      return [data.captured_at, data.event, data.distinct_id, JSON.stringify(data.properties)].join('  ')
    case 'rejected':
      return rejectLine(data)
    default:
      return `# ${kind} ${JSON.stringify(data)}`
  }
}

/** Enough to know it again; `--json` prints all of it, and so does the list of rejects. */
const bodyCharsMax = 200

function rejectLine({ received_at: receivedAt, reason, field, distinct_id: distinctId, body }: Data): string {
  const text = String(body)
  const shown = text.length > bodyCharsMax ? `${text.slice(0, bodyCharsMax)}…` : text
  const at = field === '' || field === null || field === undefined ? '' : ` (${field})`
  return [receivedAt, `rejected: ${reason}${at}`, distinctId, shown].join('  ')
}

/** What clients sent may not move the cursor. */
function printable(line: string): string {
  return line.replaceAll(/\p{Cc}/gu, char => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
