// Decides whether sessions of a page may be recorded: a project can name the domains that it records. Anyone can read the
// public key, so this check keeps other sites' pages from filling the project with recordings. It does not stop a client
// that lies about its page. Source: docs/wire/evaluation.md 2.5.

/** The headers of a request that name its page. */
export interface PageHeaders {
  readonly origin?: string | undefined
  readonly referer?: string | undefined
  readonly 'user-agent'?: string | undefined
}

/** An app has no page, so its user agent decides. Source: ours, after PostHog's own check. */
const appAgents = ['posthog-android', 'posthog-ios', 'posthog-react-native', 'posthog-flutter']

/** @param domains hosts from `parseRecordingHost`; when empty, every page may be recorded. */
export function isRecordedPage(domains: readonly string[], page: PageHeaders): boolean {
  if (domains.length === 0) return true
  const hosts = [parseHost(page.origin), parseHost(page.referer)].filter(host => host !== null)
  if (hosts.some(host => domains.some(domain => matchesDomain(domain, host)))) return true
  const agent = page['user-agent']?.slice(0, agentCharsMax).toLowerCase() ?? ''
  return appAgents.some(app => agent.includes(app))
}

const agentCharsMax = 500

/**
 * The host of an entry such as `https://app.example.com`, `https://*.example.com` or `example.com`, in lower case.
 * Ports and paths are ignored. Null for an entry without a host.
 */
export function parseRecordingHost(entry: string): string | null {
  return parseHost(/^[a-z][a-z0-9+.-]*:\/\//i.test(entry) ? entry : `https://${entry}`)
}

function parseHost(url: string | undefined): string | null {
  const host = url === undefined ? undefined : URL.parse(url)?.hostname
  return host === undefined || host === '' ? null : host
}

/** `*` matches any text. The texts between the `*` are searched for from left to right, in time linear in their number. */
function matchesDomain(domain: string, host: string): boolean {
  const [first, ...rest] = domain.split('*') as [string, ...string[]]
  const last = rest.pop()
  if (last === undefined) return domain === host
  if (!host.startsWith(first) || !host.endsWith(last) || host.length < first.length + last.length) return false
  const end = host.length - last.length
  let from = first.length
  for (const piece of rest) {
    const at = host.indexOf(piece, from)
    if (at === -1 || at + piece.length > end) return false
    from = at + piece.length
  }
  return true
}
