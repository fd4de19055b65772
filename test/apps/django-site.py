"""Serves the Django admin on a port, below a prefix. The only user is ann with the password "secret"."""

import sys

import django
from django.conf import settings
from django.core.management import call_command
from django.core.servers.basehttp import run
from django.core.wsgi import get_wsgi_application

port, prefix = int(sys.argv[1]), sys.argv[2]
apps = ["admin", "auth", "contenttypes", "sessions", "messages", "staticfiles"]

settings.configure(
    SECRET_KEY="only for a test",
    ALLOWED_HOSTS=["django.localhost", "127.0.0.1"],
    FORCE_SCRIPT_NAME=prefix or None,
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[f"django.contrib.{app}" for app in apps],
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.db"}},
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    STATIC_URL="static/",
)
django.setup()

from django.contrib import admin  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.contrib.staticfiles.views import serve  # noqa: E402
from django.urls import path  # noqa: E402

urlpatterns = [
    path("admin/", admin.site.urls),
    path("static/<path:path>", serve, {"insecure": True}),
]

call_command("migrate", verbosity=0)
User.objects.create_superuser("ann", password="secret")
run("127.0.0.1", port, get_wsgi_application(), threading=True)
