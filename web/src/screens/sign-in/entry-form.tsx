import { type ReactNode, useEffect } from 'react'
import { Form, type FormProps } from '../../components/fields/form.tsx'
import { Icon } from '../../components/icon.tsx'
import css from './entry-form.module.css'

export interface EntryPageProps {
  readonly title: string
  readonly children: ReactNode
}

/** The page of who is not signed in yet: one box in the middle. */
export function EntryPage({ title, children }: EntryPageProps) {
  useEffect(() => {
    document.title = `${title} · Pennon`
  }, [title])
  return (
    <main className={css.entry}>
      <div className={css.box}>
        <div className={css.brand}>
          <Icon name="flag" size={20} />
          Pennon
        </div>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  )
}

export function EntryForm({ title, ...form }: EntryPageProps & FormProps) {
  return (
    <EntryPage title={title}>
      <Form {...form} />
    </EntryPage>
  )
}
