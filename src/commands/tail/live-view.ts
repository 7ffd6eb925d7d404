// One connection to an instance's live view, from request to end: reports the messages, and whether a retry may help.

import { describeMissingAnswer } from '#commands/client/describe-missing-answer.ts'
import { isJsonObject, type JsonObject, parseJson } from '#core/json.ts'
import { isUnknownPathDetail } from '#wire/wire-error.ts'

/** Numbers keep the form in which they were sent, because 64-bit ids do not fit into a double. */
export type LiveMessageData = Readonly<JsonObject>

export interface LiveViewOptions {
  readonly url: URL
  readonly personalKey: string
  /** Called with each message; the first has the kind `ready`. */
  readonly onMessage: (kind: string, data: LiveMessageData) => void
  /** An instance sends something every 15 s; after this long without a byte, the connection counts as broken. */
  readonly silentAfterMs: number
  readonly monotonicNowMs: () => number
}

export interface LiveViewEnd {
  /** Whether a retry is pointless, because the key or the project is refused, or the server is not Pennon. */
  readonly isFinal: boolean
  /** For people. */
  readonly reason: string
  /** Time since the last byte, if only silence showed that the view had ended. */
  readonly silentMs?: number
  /** How long the instance asked to wait before a retry. */
  readonly retryAfterMs?: number
}

/** Passes on messages until the connection ends. */
export async function watchLiveView({
  url,
  personalKey,
  onMessage,
  silentAfterMs,
  monotonicNowMs,
}: LiveViewOptions): Promise<LiveViewEnd> {
  const leaving = new AbortController()
  // Silence is counted in quarters of `silentAfterMs`: if this process was paused (the reader of its output may stop it),
  // it reads the waiting bytes before the pause can count as silence.
  let silentQuarters = 0
  let lastByteAtMs = monotonicNowMs()
  const onBytes = () => {
    silentQuarters = 0
    lastByteAtMs = monotonicNowMs()
  }
  const watch = setInterval(() => {
    if (++silentQuarters >= 4) leaving.abort(new Error(`no data for ${silentAfterMs / 1_000} s`))
  }, silentAfterMs / 4)
  try {
    const headers = { authorization: `Bearer ${personalKey}` }
    const response = await fetch(url, { headers, signal: leaving.signal })
    if (!response.ok || response.body === null) return await readRefusal(response)
    const contentType = response.headers.get('content-type') ?? 'nothing'
    if (!contentType.startsWith('text/event-stream'))
      return { isFinal: true, reason: `it answered with ${contentType}, which is not a live view` }
    for await (const { kind, data } of readMessages(response.body, onBytes)) {
      onMessage(kind, data)
      if (kind === 'end') return toLiveViewEnd(String(data.reason))
    }
    return { isFinal: false, reason: wasClosed }
  } catch (cause) {
    const isSilent = leaving.signal.aborted
    return {
      isFinal: false,
      reason: describeCause(cause),
      ...(isSilent && { silentMs: monotonicNowMs() - lastByteAtMs }),
    }
  } finally {
    clearInterval(watch)
    leaving.abort()
  }
}

const finalEnds: Readonly<Record<string, string>> = {
  access_ended: 'access_ended: the personal API key was deleted, or can no longer read this project',
  project_deleted: 'project_deleted: the project was deleted',
}

function toLiveViewEnd(reason: string): LiveViewEnd {
  return { isFinal: reason in finalEnds, reason: finalEnds[reason] ?? reason }
}

/** While the instance is down, a proxy may answer with its own 404 or the like; such an error is temporary. */
async function readRefusal(response: Response): Promise<LiveViewEnd> {
  const { status } = response
  const text = await response.text()
  const detail = readDetail(text)
  const mayPass = status >= 500 || [408, 425, 429].includes(status) || (detail === null && ![401, 403].includes(status))
  const hint = status === 404 && !mayPass ? ` ${findHint(detail)}` : ''
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return {
    isFinal: !mayPass,
    reason: `it answered ${status}${describeResponse(detail, text)}${hint}`,
    ...(seconds > 0 && { retryAfterMs: Math.min(seconds * 1_000, retryAfterMsMax) }),
  }
}

function findHint(detail: string | null): string {
  return isUnknownPathDetail(detail)
    ? 'Check --host: if the instance has PENNON_ADMIN_PORT, its private API is on that port.'
    : 'Check --project and --host.'
}

/** Leaves out an HTML page of another server: it is meant for browsers, and says no more than its status. */
function describeResponse(detail: string | null, text: string): string {
  if (detail !== null) return `: ${detail}`
  return /^\s*(<|$)/.test(text) ? `, ${notPennon}` : `: ${text.slice(0, foreignCharsMax)}`
}

export const notPennon = 'but not like Pennon'
/** How many characters are shown of an answer that did not come from Pennon. */
const foreignCharsMax = 200
const retryAfterMsMax = 60_000

/** The detail of an error of the private API; null if the text is not such an error. */
function readDetail(text: string): string | null {
  try {
    const { code, detail, attr } = parseObject(text)
    if (typeof code !== 'string' || typeof detail !== 'string') return null
    return typeof attr === 'string' ? `${attr}: ${detail}` : detail
  } catch {
    return null
  }
}

async function* readMessages(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<{ kind: string; data: LiveMessageData }> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    onBytes()
    const messages = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = messages.pop()!
    for (const message of messages) {
      const kind = readField(message, 'event')
      const data = readField(message, 'data')
      if (kind !== undefined && data !== undefined) yield { kind, data: parseObject(data) }
    }
  }
}

/**
 * Without a regular expression: in a message only a line feed ends a line, but `.` and `$` also stop at U+2028, which JSON
 * does not escape.
 */
function readField(message: string, name: string): string | undefined {
  const head = `${name}: `
  return message
    .split('\n')
    .find(line => line.startsWith(head))
    ?.slice(head.length)
}

/** @throws Error if the text is not a JSON object. */
function parseObject(text: string): LiveMessageData {
  const value = parseJson(text)
  if (!isJsonObject(value)) throw new Error('received an invalid live view message')
  return value
}

/** The text for a connection that the instance, or a proxy in front of it, has closed. */
const wasClosed = 'the connection was closed'

/**
 * Both of fetch's errors mean a closed connection: "terminated" that the body ended early, "other side closed" that no
 * response began.
 */
function describeCause(cause: unknown): string {
  const { message, cause: inner } = cause as Error
  if (message === 'terminated' || (inner as NodeJS.ErrnoException | undefined)?.code === 'UND_ERR_SOCKET')
    return wasClosed
  return describeMissingAnswer(cause)
}
