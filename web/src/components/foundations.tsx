import type { ReactNode } from 'react'
import { I18nProvider } from 'react-aria-components'
import { Toasts } from './overlays/toasts.tsx'
import { locale } from './text/locale.ts'

/** What the components need around them, once in the page. */
export function Foundations({ children }: { children: ReactNode }) {
  return (
    <I18nProvider locale={locale}>
      {children}
      <Toasts />
    </I18nProvider>
  )
}
