// The theme and the density that this browser prefers, as attributes of the page's root that tokens.css reads.

/** What applies without a choice is the first of these. */
const choices = { theme: ['system', 'light', 'dark'], density: ['normal', 'compact', 'comfortable'] } as const
type Preference = keyof typeof choices
type Choice<P extends Preference> = (typeof choices)[P][number]

export function readPreference<P extends Preference>(name: P): Choice<P> {
  const [normal] = choices[name]
  const stored = readStored(name)
  return (choices[name] as readonly string[]).includes(stored ?? '') ? (stored as Choice<P>) : normal
}

const watchers = new Set<() => void>()

/** @returns the function that ends it. */
export function watchPreferences(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

/** What applies now, which is not stored where storage is forbidden. */
export function readApplied<P extends Preference>(name: P): Choice<P> {
  return (document.documentElement.dataset[name] ?? choices[name][0]) as Choice<P>
}

export function setPreference<P extends Preference>(name: P, choice: Choice<P>): void {
  try {
    localStorage.setItem(`pennon-${name}`, choice)
  } catch {
    // Storage is full or forbidden: the choice lasts until the page is left.
  }
  apply(name, choice)
}

/** Called before the first rendering, so that no other theme is seen first. */
export function applyPreferences(): void {
  for (const name of ['theme', 'density'] as const) apply(name, readPreference(name))
  // Other tabs follow. A key of null means that everything was removed.
  addEventListener('storage', ({ key }) => {
    for (const name of ['theme', 'density'] as const)
      if (key === null || key === `pennon-${name}`) apply(name, readPreference(name))
  })
}

function readStored(name: Preference): string | null {
  try {
    return localStorage.getItem(`pennon-${name}`)
  } catch {
    return null
  }
}

function apply(name: Preference, choice: string): void {
  if (choice === choices[name][0]) delete document.documentElement.dataset[name]
  else document.documentElement.dataset[name] = choice
  for (const watcher of watchers) watcher()
}
